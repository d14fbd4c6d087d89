/** LoopbackLink: attaches a program to lo of the thread's namespace. */
import { attachToIngress } from "../bpf.ts";
import { LOOPBACK_INDEX } from "../rtnetlink-constants.ts";

export function attachToLoopback(program: number): number {
  return attachToIngress(program, LOOPBACK_INDEX);
}
