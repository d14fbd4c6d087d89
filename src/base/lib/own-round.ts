/**
 * OwnRound: steps that each take a millisecond, and their turns. Each gets a round of the event loop that it shares with no
 * other step, so that what a query may have to wait is one step, however many are due.
 */

/** The tail of the queue. */
let last: Promise<unknown> = Promise.resolve();

/** Resolves at the begin of a round that is the caller's, until its next await. */
export async function ownRound(): Promise<void> {
  const mine = last.then(() => new Promise((resolve) => setImmediate(resolve)));
  last = mine;
  await mine;
}
