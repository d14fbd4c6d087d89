/**
 * RulesLocked: somebody in a container holds the lock of its rules. Nothing interrupts a thread that waits for it, so whoever
 * needs an answer in time goes on without one.
 */
import { setTimeout as sleep } from "node:timers/promises";

import { LIMITS } from "../../base/limits.ts";
import { Fault } from "../../base/lib/fault.ts";
import type { FailureCode } from "../../base/model/finding.ts";
import { closeQuietly, duplicate } from "../../kernel/libc.ts";
import type { NetNamespace } from "../../kernel/net-namespace.ts";
import type { NamespaceRunner } from "./namespace-runner.ts";

export const RULES_LOCKED = "RULES_LOCKED" satisfies FailureCode;

export const LOCKED_REASON =
  "a process in the container holds the lock of its rules (nf_tables), as while it loads a large set";
export const MACHINE_LOCKED_REASON =
  "a process somewhere on this machine makes all changes of nf_tables wait, also Docker's, as while a container loads large sets";

/**
 * Waits for `work`, but not for long; it then goes on by itself until the lock is free, with a descriptor of its own.
 */
export async function unlessLocked<T>(
  runner: NamespaceRunner,
  { fd, memory }: Pick<NetNamespace, "fd" | "memory">,
  work: (netns: NetNamespace) => Promise<T>,
): Promise<T> {
  const own = duplicate(fd);
  const done = work(runner.namespaceOf(own, memory)).finally(() => closeQuietly(own));
  const timer = new AbortController();
  const tooLong = sleep(LIMITS.jobLateMs, undefined, { ref: false, signal: timer.signal }).then(() => {
    throw new Fault(RULES_LOCKED, `Cannot work in the namespace: ${LOCKED_REASON}`, {
      remedy: "Retry when that process has finished.",
    });
  });
  try {
    return await Promise.race([done, tooLong]);
  } finally {
    timer.abort();
    for (const each of [done, tooLong]) each.catch(() => undefined);
  }
}
