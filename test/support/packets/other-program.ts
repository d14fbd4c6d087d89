/**
 * OtherProgram: a program that is attached to lo before all others, as one for security or observation may be.
 */
import { closeSync } from "node:fs";

import { attachToLoopback, loadProgram } from "../../../src/kernel/bpf.ts";

/** r0 = TCX_PASS, which ends the chain and lets each packet pass, or TCX_NEXT; exit */
export const ENDS_CHAIN = "b7000000000000009500000000000000";
export const LETS_PASS = "b7000000ffffffff9500000000000000";

/** In the thread's namespace, until the returned descriptor is closed. */
export function attachOther(instructions: string): number {
  const program = loadProgram("other", Buffer.from(instructions, "hex"), "GPL");
  try {
    return attachToLoopback(program);
  } finally {
    closeSync(program);
  }
}
