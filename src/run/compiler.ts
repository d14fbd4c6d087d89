/**
 * Compiler: how much V8 inlines, and when. Many small functions answer a query, which keeps them readable. With V8's
 * default limit the outermost ones have used it up before the innermost are reached.
 *
 * Such code takes long to compile. Attaching a thousand containers when dns11 starts would have most of what attaches compiled, by
 * threads that take the processors from it, and then it is over. So V8 waits longer until then.
 */
import { setFlagsFromString } from "node:v8";

import { LIMITS } from "../base/limits.ts";

const { starting, running } = LIMITS.bytecodeUntilOptimized;

/** Must run before the first answer: code that is already compiled stays as it is. */
export function tuneCompiler(): void {
  setFlagsFromString(`--max-inlined-bytecode-size-cumulative=${LIMITS.inlinedBytecode}`);
  optimizeAfter(starting);
}

/** From now on what runs often is what answers queries. */
export function endStartOfCompiler(): void {
  optimizeAfter(running);
}

function optimizeAfter(bytes: number): void {
  setFlagsFromString(`--interrupt-budget=${bytes}`);
}
