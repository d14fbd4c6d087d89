// The attacker's floods: garbage, malformed queries, and very many valid ones.

import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";

import { withLength } from "../../../src/base/lib/stream-reader.ts";
import { HOSTILE, HUGE, QUERIES } from "../../fuzz/corpus.ts";
import { mutated } from "../../fuzz/mutate.ts";
import { Random } from "../../fuzz/random.ts";
import { queryInFlight, query, sendUdp, tcpSocket, udpSocket } from "./queries.ts";

const DATAGRAM_MAX = 65_507;
const WAIT_TIMEOUT_MS = 50;
const IN_FLIGHT = 1_000;
const ALL = [...QUERIES, ...HOSTILE];

// Sends this many bytes, half of them in datagrams of all sizes and half over TCP.
export async function garbage(bytes: number): Promise<object> {
  const block = randomBytes(1024 * 1024);
  const [datagrams, streamed] = await Promise.all([throwDatagrams(block, bytes / 2), pour(block, bytes / 2)]);
  return { datagrams, streamed };
}

// Sizes from zero to the maximum, mostly the maximum, to reach the byte count quickly.
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

// Reconnects when dns11 closes the connection or stops reading.
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
      isPatient = (await Promise.race([drained, closed, pause(WAIT_TIMEOUT_MS)])) === true;
    }
    socket.destroy();
    await closed;
  }
  return poured;
}

// Mutations of valid and hostile queries: over UDP, and every hundredth over TCP, with the longest ones.
export async function malformedQueries(count: number): Promise<object> {
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
    await Promise.race([once(connection, "close"), pause(WAIT_TIMEOUT_MS)]);
    connection.destroy();
    streamed++;
  }
  return { sent: count, answered, streamed };
}

// Each name once, as fast as they are answered: each is forwarded and cached. A busy machine loses many, so that more are sent
// until half of the number was answered.
export async function newNames(count: number): Promise<object> {
  let [sent, answered] = [0, 0];
  while (answered <= count / 2) {
    const first = 1_000_000 + sent;
    const round = await queryInFlight((index) => `n${first + index}.ok.test`, { count, inFlight: IN_FLIGHT });
    sent += round.sent;
    answered += round.answered;
  }
  return { sent, answered };
}

// Without waiting for replies: container names and external names, repeated and new ones.
export async function questions(count: number): Promise<object> {
  const socket = await udpSocket();
  let answered = 0;
  socket.on("message", () => answered++);
  const names = (index: number): string =>
    ["web", "kept.ok.test", "nobody", `n${2_000_000 + index}.ok.test`][index % 4] ?? "";
  for (let index = 0; index < count; index++) {
    await sendUdp(socket, query(names(index), index));
    // Lets this program's event loop receive replies.
    if (index % 200 === 0) await pause(0);
  }
  await pause(500);
  return { sent: count, answered };
}

// The same on the host, below the domain of container names: names of containers, of nobody, and addresses.
export async function hostQuestions(count: number): Promise<object> {
  const socket = await udpSocket("127.0.0.1");
  let answered = 0;
  socket.on("message", () => answered++);
  const names = (index: number): string => ["web.docker", `n${index}.docker`, `n${index}.web.docker`][index % 3] ?? "";
  for (let index = 0; index < count; index++) {
    await sendUdp(socket, query(names(index), index));
    if (index % 200 === 0) await pause(0);
  }
  await pause(500);
  return { sent: count, answered };
}
