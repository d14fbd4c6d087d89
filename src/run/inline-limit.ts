/**
 * InlineLimit: how much code V8 compiles into its caller. Many small functions answer a query, which keeps them
 * readable. With V8's default limit the outermost ones have used it up before the innermost are reached.
 */
import { setFlagsFromString } from "node:v8";

import { LIMITS } from "../base/limits.ts";

/** Must run before the first answer: code that is already compiled stays as it is. */
export function raiseInlineLimit(): void {
  setFlagsFromString(`--max-inlined-bytecode-size-cumulative=${LIMITS.inlinedBytecode}`);
}
