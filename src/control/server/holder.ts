import { readFileSync } from "node:fs";

import { peerProcess } from "../../kernel/libc.ts";

/** The process at the other end of a connection to the control socket. Whoever reads that a fault is injected must find out by whom. */
export interface Holder {
  /** 0 if it is in another PID namespace. */
  readonly pid: number;
  /** Its command; empty if it is not known. */
  readonly command: string;
}

export function holderText({ pid, command }: Holder): string {
  if (pid === 0) return "a process in another PID namespace";
  return command === "" ? `pid ${pid}` : `${command}, pid ${pid}`;
}

/** As the kernel says it. Its command is that of its thread, which the kernel has at hand: its arguments may have to be waited for. */
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
