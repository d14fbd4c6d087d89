/**
 * UntilQuiet: waits until a namespace whose queries go to Docker's resolver again has its last answers from us.
 */
import { setImmediate as nextRound, setTimeout as sleep } from "node:timers/promises";

import { LIMITS } from "../../base/limits.ts";
import type { Endpoint } from "./endpoint.ts";

export async function untilQuiet(endpoint: Endpoint): Promise<void> {
  const deadlineMs = performance.now() + LIMITS.drainMs;
  // Queries that arrived before the rules changed still wait in the socket: leave once nothing has come for a while.
  let before;
  do {
    before = endpoint.counters["queries"];
    await sleep(LIMITS.drainQuietMs);
    // Timers run before sockets: after a long call our sockets have not been read yet.
    await nextRound();
  } while (
    (endpoint.counters["queries"] !== before || endpoint.inFlight > 0 || endpoint.tcpClientPorts.length > 0) &&
    performance.now() < deadlineMs
  );
}
