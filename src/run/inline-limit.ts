/**
 * Inlining: how much of what an answer calls is compiled as part of it. A query is answered by many small functions, which
 * is how they can be read; with V8's usual allowance the outermost ones have used it up before the bytes are reached.
 */
import { setFlagsFromString } from "node:v8";

import { LIMITS } from "../base/limits.ts";

/** Before anything is answered: what is compiled already stays as it is. */
export function raiseInlineLimit(): void {
  setFlagsFromString(`--max-inlined-bytecode-size-cumulative=${LIMITS.inlinedBytecode}`);
}
