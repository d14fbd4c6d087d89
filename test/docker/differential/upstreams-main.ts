// The process of the upstream servers: one at each given address, over UDP and TCP, identified by its index in the list.
// Their replies are in upstream-replies.ts. It exits when the pipe from the test closes.

import { createSocket } from "node:dgram";
import { createServer, isIPv6, type Socket } from "node:net";
import { createInterface } from "node:readline";

import { onEachMessage } from "../../support/rig/framed.ts";
import { readQuestion, type Transport } from "../../support/servers/upstream-question.ts";
import { upstreamReplies } from "./upstream-replies.ts";
import type { UpstreamsLine } from "./upstreams.ts";

const PORT = 53;

function print(line: UpstreamsLine): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

type Send = (reply: Buffer) => void;

function handle(message: Buffer, transport: Transport, server: number, send: Send): void {
  print({ server, transport, message: message.toString("hex") });
  const question = readQuestion(message, transport, "");
  if (question === undefined) return;
  const { replies, delayMs } = upstreamReplies(question, server);
  if (delayMs === 0) for (const reply of replies) send(reply);
  else setTimeout(() => replies.map(send), delayMs);
}

async function serveUdp(address: string, server: number): Promise<void> {
  const socket = createSocket(isIPv6(address) ? "udp6" : "udp4");
  socket.on("message", (message, { address: peer, port }) => {
    handle(message, "udp", server, (reply) => socket.send(reply, port, peer));
  });
  await new Promise<void>((resolve, reject) => {
    socket.once("error", reject);
    socket.bind(PORT, address, resolve);
  });
}

async function serveTcp(address: string, server: number): Promise<void> {
  const listener = createServer((connection) => serveConnection(connection, server));
  await new Promise<void>((resolve, reject) => {
    listener.once("error", reject);
    listener.listen(PORT, address, resolve);
  });
}

function serveConnection(connection: Socket, server: number): void {
  onEachMessage(connection, (message) => {
    handle(message, "tcp", server, (reply) => sendFramed(connection, reply));
  });
}

// An empty reply closes the connection.
function sendFramed(connection: Socket, reply: Buffer): void {
  if (!connection.writable) return;
  if (reply.length === 0) {
    connection.destroy();
    return;
  }
  const length = Buffer.alloc(2);
  length.writeUInt16BE(reply.length);
  connection.write(Buffer.concat([length, reply]));
}

const addresses = process.argv.slice(2);
await Promise.all(addresses.flatMap((address, server) => [serveUdp(address, server), serveTcp(address, server)]));
print("ready");
for await (const _ of createInterface({ input: process.stdin })) {
  // After the sockets had their turn: a datagram that arrived before this line is printed before it.
  setImmediate(() => print("flushed"));
}
process.exit(0);
