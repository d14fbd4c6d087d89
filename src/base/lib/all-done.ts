/**
 * allDone: the end of several works, also of those beside one that has failed: whoever reacts to the failure must not be overtaken by them.
 */

/** Resolves when all have ended; throws the first failure. */
export async function allDone(works: readonly Promise<unknown>[]): Promise<void> {
  for (const each of await Promise.allSettled(works)) if (each.status === "rejected") throw each.reason;
}
