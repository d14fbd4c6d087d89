/**
 * Zones: a connection tracking zone for each time that sockets are made in a namespace. The entries of a time before lead
 * to ports that nobody has any more, and a client that keeps its socket would be led there for as long as it asks.
 */
import { randomInt } from "node:crypto";

/** Zone 0 is everybody's. */
const FIRST = 1;
const LAST = 0xffff;

/** Draws where a run begins, because there may have been another one; then no number comes twice until all were used. */
export function zoneAllocator(): () => number {
  let next = randomInt(FIRST, LAST + 1);
  return () => {
    const zone = next;
    next = zone === LAST ? FIRST : zone + 1;
    return zone;
  };
}
