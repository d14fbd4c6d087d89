// Warm-up of a server before it is measured: caches are filled, and dns11, which has just been started, is compiled while it runs.

const TIMES_MAX = 20;
const STILL_FASTER = 1.1;
// One that is no faster may have been disturbed.
const NO_FASTER_TIMES = 2;

// Puts load on it until that makes it no faster; a slow machine needs longer. `load` returns the queries a second.
export async function warmUp(load: () => Promise<number>): Promise<void> {
  let best = 0;
  let noFaster = 0;
  for (let times = 0; times < TIMES_MAX && noFaster < NO_FASTER_TIMES; times++) {
    const now = await load();
    noFaster = now < best * STILL_FASTER ? noFaster + 1 : 0;
    best = Math.max(best, now);
  }
}
