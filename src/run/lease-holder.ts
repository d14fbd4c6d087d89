/**
 * LeaseHolder: which process is at the other end of a connection to the control socket, as the kernel says it.
 */
import { readFileSync } from "node:fs";

import type { Holder } from "../control/lease/holder.ts";
import { peerProcess } from "../kernel/libc.ts";

/** Its command is that of its thread, which the kernel has at hand: its arguments may have to be waited for. */
export function holderOf(socket: object): Holder {
  // Node has no other name for it.
  const { _handle: handle } = socket as { readonly _handle?: { readonly fd?: number } | null };
  const fd = handle?.fd ?? -1;
  const pid = fd < 0 ? 0 : peerProcess(fd);
  return { pid, command: pid === 0 ? "" : commandOf(pid) };
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, "utf8").trim();
  } catch {
    return "";
  }
}
