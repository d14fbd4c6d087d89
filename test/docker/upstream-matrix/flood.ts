// A flood of queries that servers do not answer (B52): more at once than a container may have in flight. A query holds its
// slot for four seconds per server and waits for a slot no longer than that. So the first query without a slot still gets
// one, just in time, and only queries after a whole second round are refused. Which ones they are depends on how the threads
// of an engine are scheduled; how many they are does not.

import { type ResolverClient, type Ports } from "../differential/client.ts";
import { byUdp, query } from "../differential/question.ts";
import { pause } from "../../support/rig/wait.ts";

const SLOTS = 1024;
const ROUNDS = 2;
// More than may be lost on the way, because the flood arrives faster than a busy machine reads.
export const TOO_MANY = 100;
const AT_ONCE = 16;
const BETWEEN_MS = 8;
// After the four seconds of queries that wait for a slot, and before the eight of queries that wait for a second one.
const WAIT_MS = 6_000;
const REFUSED = 5;

// Returns how many queries of the flood were refused.
export async function countRefused(client: ResolverClient, ports: Ports, firstId: number): Promise<number> {
  const outcomes: Promise<boolean>[] = [];
  for (let place = 0; place < SLOTS * ROUNDS + TOO_MANY; place++) {
    const question = byUdp("four", `place ${place}`, query({ name: `x${place}.silent-all` }), WAIT_MS);
    const isRefused = client.query(question, firstId + place, ports).then(({ replies: [reply] }) => {
      return reply !== undefined && (Buffer.from(reply, "hex").readUInt16BE(2) & 15) === REFUSED;
    });
    outcomes.push(isRefused);
    if (place % AT_ONCE === AT_ONCE - 1) await pause(BETWEEN_MS);
  }
  return (await Promise.all(outcomes)).filter(Boolean).length;
}
