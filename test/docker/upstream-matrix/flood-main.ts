// The process that floods one resolver from inside a container's network namespace: its arguments are a port, how many
// queries to send and how long to wait for replies. Its output is one line of JSON. One socket and nothing else to do,
// because the flood must be sent before the first query of it gives up its slot.

import { createSocket } from "node:dgram";
import { setTimeout as pause } from "node:timers/promises";

import { query } from "../differential/question.ts";

export type FloodOutcome = { readonly refused: number; readonly sendingMs: number };

const RESOLVER = "127.0.0.11";
// A socket buffer holds some 270 queries, so its reader may be late by 60 milliseconds.
const AT_ONCE = 16;
const BETWEEN_MS = 4;
const REFUSED = 5;

const [port = 0, count = 0, waitMs = 0] = process.argv.slice(2).map(Number);
const socket = createSocket("udp4");
let refused = 0;
socket.on("message", (reply) => {
  if (reply.length > 3 && (reply.readUInt16BE(2) & 15) === REFUSED) refused++;
});
await new Promise<void>((resolve) => socket.connect(port, RESOLVER, resolve));
const startMs = performance.now();
for (let place = 0; place < count; place++) {
  const message = query({ name: `x${place}.silent-all` });
  message.writeUInt16BE(place);
  socket.send(message);
  if (place % AT_ONCE === AT_ONCE - 1) await pause(BETWEEN_MS);
}
const sendingMs = Math.round(performance.now() - startMs);
await pause(waitMs);
socket.close();
process.stdout.write(`${JSON.stringify({ refused, sendingMs } satisfies FloodOutcome)}\n`);
