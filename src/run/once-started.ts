/**
 * OnceStarted: what changes once, when startup has finished: every container that ran has been attached, or has failed.
 */
import { LIMITS } from "../base/limits.ts";
import { endStartOfCompiler } from "./compiler.ts";
import { trimMallocLater } from "./heap.ts";

export function onceStarted(isStarted: () => boolean, onStarted: () => void): void {
  const timer = setInterval(() => {
    if (!isStarted()) return;
    clearInterval(timer);
    endStartOfCompiler();
    trimMallocLater();
    onStarted();
  }, LIMITS.startCheckMs);
  timer.unref();
}
