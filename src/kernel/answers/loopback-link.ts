/**
 * LoopbackLink: attaches a program to lo of the thread's namespace.
 */
import { attachToIngress } from "../bpf.ts";

/** The index of lo in every namespace. */
export const LOOPBACK_INDEX = 1;

/** Returns the descriptor of the link. */
export function attachToLoopback(program: number): number {
  return attachToIngress(program, LOOPBACK_INDEX);
}
