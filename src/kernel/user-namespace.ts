/**
 * UserNamespace: which one a process is in, and whose rights this process has. In the machine's own, root is root; in
 * that of a rootless engine, root is the user who made it, and has rights over that engine's namespaces only.
 */
import { readlinkSync, statSync } from "node:fs";

import { procText } from "./proc-text.ts";

/** Undefined if the process has exited, or belongs to somebody else. */
export function userNamespaceOf(pid: number | "self"): string | undefined {
  return orUndefined(() => readlinkSync(`/proc/${pid}/ns/user`));
}

/** Whether a process is in our network namespace; false if it has exited, or belongs to somebody else. */
export function sharesNetwork(pid: number): boolean {
  const [own, its] = (["self", pid] as const).map((each) => orUndefined(() => readlinkSync(`/proc/${each}/ns/net`)));
  return own !== undefined && own === its;
}

/** The folder in which the rootlesskit above a process keeps its state, as the process sees it; undefined without one. */
export function rootlesskitFolder(pid: number): string | undefined {
  return orUndefined(
    () => /(?:^|\0)ROOTLESSKIT_STATE_DIR=(\/[^\0]+)/.exec(procText(`/proc/${pid}/environ`) ?? "")?.[1],
  );
}

/** The user of a process, as a number of our user namespace; undefined if it has exited. */
export function userOf(pid: number): number | undefined {
  return orUndefined(() => statSync(`/proc/${pid}`).uid);
}

/** The user outside who is root here; undefined in the machine's own user namespace. */
export function outerUser(): number | undefined {
  return rootIn(procText("/proc/self/uid_map") ?? "");
}

/** The user outside whom a map makes root; undefined for the map of the machine's own user namespace. */
export function rootIn(uidMap: string): number | undefined {
  const user = /^\s*0\s+(\d+)\s/m.exec(uidMap)?.[1];
  return user === undefined || user === "0" ? undefined : Number(user);
}

function orUndefined<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
