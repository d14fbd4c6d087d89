// Owns a crowd of questions that servers leave unanswered (B52): more at once than a container may have in flight. A
// question holds its slot for four seconds a server and waits for one no longer than that. So the one behind the last
// slot still gets one, just in time, and only who comes behind a whole second round is refused. Who that is depends on how
// an engine's threads overtake each other; how many they are does not.

import { type Asker, type Ports } from "../differential/asker.ts";
import { byUdp, query } from "../differential/question.ts";
import { pause } from "../../support/rig/wait.ts";

const SLOTS = 1024;
const ROUNDS = 2;
// More than may get lost on the way, for the crowd comes faster than a busy machine reads.
export const TOO_MANY = 100;
const AT_ONCE = 16;
const BETWEEN_MS = 8;
// Past the four seconds of those who wait for a slot, and before the eight of those who wait for another one.
const WAIT_MS = 6_000;
const REFUSED = 5;

// How many of the crowd were refused.
export async function refusedOf(asker: Asker, ports: Ports, firstId: number): Promise<number> {
  const asking: Promise<boolean>[] = [];
  for (let place = 0; place < SLOTS * ROUNDS + TOO_MANY; place++) {
    const question = byUdp("four", `place ${place}`, query({ name: `x${place}.silent-all` }), WAIT_MS);
    const isRefused = asker.ask(question, firstId + place, ports).then(({ replies: [reply] }) => {
      return reply !== undefined && (Buffer.from(reply, "hex").readUInt16BE(2) & 15) === REFUSED;
    });
    asking.push(isRefused);
    if (place % AT_ONCE === AT_ONCE - 1) await pause(BETWEEN_MS);
  }
  return (await Promise.all(asking)).filter(Boolean).length;
}
