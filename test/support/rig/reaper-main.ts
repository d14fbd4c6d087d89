/** Process that outlives a test file just long enough to remove what it left; see reaper.ts. */
import { createInterface } from "node:readline";
import { type Leftovers, removeLeftovers } from "./leftovers.ts";
import type { ReaperOrder } from "./reaper.ts";

const held = new Map<string, Leftovers>();

for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line) as ReaperOrder;
  if ("hold" in order) held.set(order.hold.id, order.hold);
  else held.delete(order.release);
}

// The pipe is closed, so the test is dead. A failed removal does not stop the others.
await Promise.allSettled([...held.values()].map(removeLeftovers));
