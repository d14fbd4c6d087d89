// Owns the attacker's floods: garbage, spoilt queries, and more questions than anybody has.

import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";

import { withLength } from "../../../src/base/lib/framing.ts";
import { HOSTILE, HUGE, QUERIES } from "../../fuzz/corpus.ts";
import { mutated } from "../../fuzz/mutate.ts";
import { Random } from "../../fuzz/random.ts";
import { askInFlight, query, sendUdp, tcpSocket, udpSocket } from "./queries.ts";

const DATAGRAM_MAX = 65_507;
const PATIENCE_MS = 50;
const IN_FLIGHT = 1_000;
const ALL = [...QUERIES, ...HOSTILE];

// So many bytes of it, half of them in datagrams of all sizes and half over TCP.
export async function garbage(bytes: number): Promise<object> {
  const block = randomBytes(1024 * 1024);
  const [datagrams, streamed] = await Promise.all([throwDatagrams(block, bytes / 2), pour(block, bytes / 2)]);
  return { datagrams, streamed };
}

// Sizes from nothing to the largest, and of the largest most, for the bytes are to come together.
async function throwDatagrams(block: Buffer, bytes: number): Promise<number> {
  const socket = await udpSocket();
  let count = 0;
  for (let sent = 0; sent < bytes; count++) {
    const size = count % 3 === 0 ? count % 600 : DATAGRAM_MAX;
    const start = (count * 7919) % (block.length - size);
    await sendUdp(socket, block.subarray(start, start + size));
    sent += size;
  }
  socket.close();
  return count;
}

// Whoever is hung up on, or kept waiting, comes again.
async function pour(block: Buffer, bytes: number): Promise<number> {
  let poured = 0;
  while (poured < bytes) {
    const socket = await tcpSocket();
    if (socket === undefined) continue;
    socket.resume();
    const closed = new Promise((resolve) => socket.once("close", resolve));
    let isPatient = true;
    while (poured < bytes && isPatient && !socket.destroyed) {
      const start = poured % (block.length / 2);
      poured += block.length / 2;
      if (socket.write(block.subarray(start, start + block.length / 2))) continue;
      const drained = new Promise((resolve) => socket.once("drain", () => resolve(true)));
      isPatient = (await Promise.race([drained, closed, pause(PATIENCE_MS)])) === true;
    }
    socket.destroy();
    await closed;
  }
  return poured;
}

// Sound and cunning queries, spoilt: by UDP, and each hundredth by TCP with the longest ones.
export async function spoiltQueries(count: number): Promise<object> {
  const socket = await udpSocket();
  let answered = 0;
  let streamed = 0;
  socket.on("message", () => answered++);
  for (let index = 0; index < count; index++) {
    const random = new Random(7, index);
    await sendUdp(socket, mutated(random.pick(ALL), random, ALL));
    if (index % 50 === 0) await pause(1);
    if (index % 100 !== 0) continue;
    const connection = await tcpSocket();
    if (connection === undefined) continue;
    connection.resume();
    const long = HUGE[(index / 100) % HUGE.length] ?? Buffer.alloc(0);
    connection.end(withLength(index % 200 === 0 ? long : mutated(random.pick(ALL), random, ALL)));
    await Promise.race([once(connection, "close"), pause(PATIENCE_MS)]);
    connection.destroy();
    streamed++;
  }
  return { sent: count, answered, streamed };
}

// Every name once, as fast as they are answered: each is asked outside, and kept.
export async function newNames(count: number): Promise<object> {
  return await askInFlight((index) => `n${1_000_000 + index}.ok.test`, { count, inFlight: IN_FLIGHT });
}

// Without waiting for any answer: names of containers and of the world, the same and ever new ones.
export async function questions(count: number): Promise<object> {
  const socket = await udpSocket();
  let answered = 0;
  socket.on("message", () => answered++);
  const names = (index: number): string =>
    ["web", "kept.ok.test", "nobody", `n${2_000_000 + index}.ok.test`][index % 4] ?? "";
  for (let index = 0; index < count; index++) {
    await sendUdp(socket, query(names(index), index));
    // The event loop of a client has to come round, too.
    if (index % 200 === 0) await pause(0);
  }
  await pause(500);
  return { sent: count, answered };
}
