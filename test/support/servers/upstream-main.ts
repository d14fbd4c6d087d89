/**
 * Process of the scripted upstream server: its sockets, and the lines that report its queries to the test. It ends with
 * the pipe to the test, so it never outlives it. Arguments: address and port.
 */
import { createSocket } from "node:dgram";
import { createServer, isIPv6, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { onEachMessage } from "../rig/framed.ts";
import { replyTo } from "./upstream-answer.ts";
import { readQuestion, type Transport } from "./upstream-question.ts";
import { RELEASE, type UpstreamLine } from "./upstream.ts";

const [address = "", port = ""] = process.argv.slice(2);

const held: (() => void)[] = [];

function report(line: UpstreamLine): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

/** Reported before the reply is sent, so that a test that has the reply finds the query. */
function handle(message: Buffer, transport: Transport, from: string, send: (reply: Buffer) => void): void {
  const question = readQuestion(message, transport, from);
  if (question === undefined) return;
  report({ query: question });
  const reply = replyTo(question);
  if (reply === undefined) return;
  if (reply.delayMs === 0) send(reply.message);
  else if (reply.delayMs === Infinity) held.push(() => send(reply.message));
  else setTimeout(() => send(reply.message), reply.delayMs);
}

async function serveUdp(): Promise<void> {
  const socket = createSocket(isIPv6(address) ? "udp6" : "udp4");
  socket.on("message", (message, { address: peer, port: peerPort }) => {
    handle(message, "udp", `${peer}#${peerPort}`, (reply) => socket.send(reply, peerPort, peer));
  });
  await new Promise<void>((resolve, reject) => {
    socket.once("error", reject);
    socket.bind(Number(port), address, resolve);
  });
}

async function serveTcp(): Promise<void> {
  const server = createServer(serveConnection);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(Number(port), address, resolve);
  });
}

function serveConnection(connection: Socket): void {
  const from = `${connection.remoteAddress ?? ""}#${connection.remotePort ?? 0}`;
  onEachMessage(connection, (message) => {
    handle(message, "tcp", from, (reply) => connection.writable && connection.write(framed(reply)));
  });
}

function framed(message: Buffer): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(message.length);
  return Buffer.concat([length, message]);
}

await Promise.all([serveUdp(), serveTcp()]);
report({ ready: true });
for await (const line of createInterface({ input: process.stdin })) {
  if (line === RELEASE) for (const send of held.splice(0)) send();
  // After pending socket events: a datagram that arrived before this line is reported before it.
  setImmediate(() => report({ echo: line }));
}
process.exit(0);
