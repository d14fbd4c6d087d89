/**
 * Zones: a new conntrack zone each time sockets are created in a namespace. Entries of an earlier zone point to closed
 * ports, and a client that keeps its socket would be redirected there for as long as it sends queries.
 */
import { randomInt } from "node:crypto";

/** Zone 0 is the default zone. */
const FIRST = 1;
const LAST = 0xffff;

/** Starts at a random zone, because an earlier process may have used some, and repeats none before all are used. */
export function zoneAllocator(): () => number {
  let next = randomInt(FIRST, LAST + 1);
  return () => {
    const zone = next;
    next = zone === LAST ? FIRST : zone + 1;
    return zone;
  };
}
