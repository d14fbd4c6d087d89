/** Process that removes what a test file has left; see reaper.ts. Its arguments are what is left, as JSON. */
import { type Leftovers, removeLeftovers } from "./leftovers.ts";

// The pipe is closed, so the test is dead. A failed removal does not stop the others.
await Promise.allSettled(process.argv.slice(2).map((text) => removeLeftovers(JSON.parse(text) as Leftovers)));
