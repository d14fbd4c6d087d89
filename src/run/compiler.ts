/**
 * Compiler: how much V8 inlines, and when. Many small functions answer a query, which keeps them readable. With V8's
 * default limit the outermost ones have used it up before the innermost are reached. Such code takes long to compile, so only
 * functions that run often are: those that answer queries, but not those that attach a thousand containers once.
 */
import { setFlagsFromString } from "node:v8";

import { LIMITS } from "../base/limits.ts";

/** Must run before the first answer: code that is already compiled stays as it is. */
export function tuneCompiler(): void {
  setFlagsFromString(`--max-inlined-bytecode-size-cumulative=${LIMITS.inlinedBytecode}`);
  setFlagsFromString(`--interrupt-budget=${LIMITS.bytecodeUntilOptimized}`);
}
