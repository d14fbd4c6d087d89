// The attacker's TCP connections: idle, slow or flooding ones, replies that are never read, and servers of its own that never
// finish a reply.

import type { Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";

import { withLength } from "../../../src/base/lib/stream-reader.ts";
import { aPointer, aQuery, aRecord, anOpt, TYPE } from "../../support/scripted/builders.ts";
import { eventOf, framedQuery, query, sendUdp, tcpSocket, udpSocket } from "./queries.ts";
import { Serving } from "./serving.ts";

const AT_ONCE = 200;
const SILENT_MS = 2_000;
const HELD_MS = 2_000;
const PIPELINED = 32;
const LONGEST = 65_535;
const ANSWERED = 0x8180;
const TRUNCATED = 0x8380;
const FIRST_TRIES = 20;
const FIRST_MS = 250;

async function openMany(count: number): Promise<{ open: Set<Socket>; refused: number }> {
  const open = new Set<Socket>();
  let refused = 0;
  for (let begun = 0; begun < count; begun += AT_ONCE) {
    const sockets = await Promise.all(Array.from({ length: Math.min(AT_ONCE, count - begun) }, tcpSocket));
    for (const socket of sockets) {
      if (socket === undefined) refused++;
      else {
        open.add(socket);
        socket.on("close", () => open.delete(socket));
        socket.resume();
      }
    }
  }
  return { open, refused };
}

export async function idle(count: number): Promise<object> {
  const { open, refused } = await openMany(count);
  const stillOpen = open.size;
  await pause(SILENT_MS);
  return { sent: count, refused, stillOpen };
}

// Sends a byte now and then, so that no connection is idle for long. On a busy machine it goes on until only `most` are open.
export async function slowDrip(count: number, most: number): Promise<object> {
  const { open } = await openMany(count);
  const message = framedQuery("web", 1);
  let dripped = 0;
  for (let round = 0; round < 20 || (open.size > most && round < 400); round++) {
    const at = round % message.length;
    for (const socket of open) {
      socket.write(message.subarray(at, at + 1));
      dripped++;
    }
    await pause(HELD_MS / 20);
  }
  return { sent: count, dripped, stillOpen: open.size };
}

function secondsSince(startMs: number): number {
  return (performance.now() - startMs) / 1000;
}

function emptyReply(request: Buffer, flags = ANSWERED, type: number = TYPE.A): Buffer {
  const name = request.subarray(12, request.indexOf(0, 12) + 1);
  return aQuery({ id: request.readUInt16BE(0), flags, name, type });
}

function longest(request: Buffer): Buffer {
  const head = aQuery({ flags: 0x8180, name: request.subarray(12, request.indexOf(0, 12) + 1), type: TYPE.TXT });
  const record = aRecord({ owner: aPointer(12), type: TYPE.TXT, ttl: 0, data: Buffer.alloc(256, 0x20) });
  record[12] = 255;
  const count = Math.floor((LONGEST - head.length) / record.length);
  const reply = Buffer.concat([head, ...Array.from({ length: count }, () => record)]);
  request.copy(reply, 0, 0, 2);
  reply.writeUInt16BE(count, 6);
  return reply;
}

// Replies of maximum length, on connections whose client sends 32 queries at a time and reads no reply.
export async function unreadReplies(count: number): Promise<object> {
  const startMs = performance.now();
  const server = await Serving.at({
    udp: (request) => [emptyReply(request, TRUNCATED, TYPE.TXT)],
    tcp: (request, connection) => void connection.write(withLength(longest(request))),
  });
  const sockets = await Promise.all(Array.from({ length: count }, tcpSocket));
  let open = 0;
  for (const [place, socket] of sockets.entries()) {
    if (socket === undefined) continue;
    open++;
    socket.pause();
    for (let index = 0; index < PIPELINED; index++) {
      socket.write(framedQuery(`u${place}x${index}.evil.test`, index, TYPE.TXT));
    }
  }
  await pause(HELD_MS);
  for (const socket of sockets) socket?.destroy();
  return { opened: open, served: server.queries, accepted: server.accepted, seconds: secondsSince(startMs) };
}

// A server that forces TCP, accepts every connection and answers nothing on it, or one byte at a time. It answers once over TCP
// before: an earlier attack may have shown that its TCP is blocked, and dns11 does not try it for a while then.
export async function hoardedConnections(count: number): Promise<object> {
  const startMs = performance.now();
  const dripping = new Set<Socket>();
  let hasAnswered = false;
  const server = await Serving.at({
    udp: (request) => [emptyReply(request, TRUNCATED)],
    tcp: (request, connection) => {
      if (hasAnswered) return void dripping.add(connection);
      hasAnswered = true;
      connection.write(withLength(emptyReply(request)));
    },
  });
  for (let tries = 0; tries < FIRST_TRIES && !hasAnswered; tries++) {
    const first = await tcpSocket();
    first?.write(framedQuery(`first${tries}.evil.test`, tries));
    await pause(FIRST_MS);
    first?.destroy();
  }
  const socket = await udpSocket();
  for (let index = 0; index < count; index++) {
    await sendUdp(socket, query(`h${index}.evil.test`, index));
    if (index % 50 !== 0) continue;
    for (const connection of dripping) if (connection.writable) connection.write(Buffer.of(index % 2));
    await pause(20);
  }
  await pause(500);
  return {
    served: server.queries,
    accepted: server.accepted,
    hoarded: dripping.size,
    seconds: secondsSince(startMs),
  };
}

// The longest queries, 4 KB over UDP and 60 KB over TCP, to a server that never answers.
export async function waitingQueries(count: number): Promise<object> {
  const server = await Serving.at({});
  const padded = (index: number, bytes: number): Buffer => {
    const name = `w${index}.evil.test`;
    return aQuery({ id: index & 0xffff, name, additionals: [anOpt({ options: [[12, Buffer.alloc(bytes)]] })] });
  };
  const socket = await udpSocket();
  for (let index = 0; index < count; index++) {
    await sendUdp(socket, padded(index, 4_000));
    if (index % 50 === 0) await pause(5);
  }
  const sockets = await Promise.all(Array.from({ length: 100 }, tcpSocket));
  const poured = sockets.map(async (connection, place) => {
    for (let index = 0; index < PIPELINED && connection?.writable === true; index++) {
      if (connection.write(withLength(padded(place * PIPELINED + index, 60_000)))) continue;
      await Promise.race([eventOf(connection, "drain"), eventOf(connection, "close"), pause(500)]);
    }
  });
  await Promise.all(poured);
  await pause(HELD_MS / 2);
  return { sent: count, served: server.queries };
}
