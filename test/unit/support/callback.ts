// When the current callback of the event loop returns: what it left for its end is done, and promises that are ready have not gone on.

export async function callbackReturns(): Promise<void> {
  await new Promise<void>((resolve) => process.nextTick(resolve));
}
