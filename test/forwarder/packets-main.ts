// One side of a scenario, in a namespace of its own. As "client" it sends the messages that it reads, as "server" it listens at the
// addresses of its arguments; both print every message that arrives. One JSON value a line.

import { createSocket, type Socket } from "node:dgram";
import { type Socket as Stream, connect, createServer } from "node:net";
import { createInterface } from "node:readline";

import { withLength } from "../../src/base/lib/stream-reader.ts";
import { DOCKER_RESOLVER } from "../../src/container/capture/capture.ts";
import { onEachMessage } from "../support/rig/framed.ts";
import type { Order, Packet } from "./scene.ts";

const PORT = 53;
const [role = "", ...addresses] = process.argv.slice(2);

function print(packet: Packet): void {
  process.stdout.write(`${JSON.stringify(packet)}\n`);
}

/** What to do with an order for a message that has been printed. */
const answering = new Map<number, (order: Order) => void>();
let printed = 0;

function arrived(at: string, isStream: boolean, message: Buffer, answer: (order: Order) => void): void {
  const key = (printed += 1);
  answering.set(key, answer);
  print({ key, at, isStream, hex: message.toString("hex") });
}

function listenAt(address: string): Promise<void>[] {
  const socket = createSocket("udp4");
  socket.on("message", (message, from) =>
    arrived(address, false, message, ({ hex = "", from: other }) => {
      // A reply from an address that was not asked is one of the things to test.
      const sender = other === undefined ? socket : createSocket("udp4");
      const reply = (): void => sender.send(Buffer.from(hex, "hex"), from.port, from.address);
      if (other === undefined) reply();
      else sender.bind(0, other, reply);
    }),
  );
  const server = createServer((stream) => {
    onEachMessage(stream, (message) =>
      arrived(address, true, message, ({ hex, isClosing = false }) => {
        if (hex !== undefined) stream.write(withLength(Buffer.from(hex, "hex")));
        if (isClosing) stream.end();
      }),
    );
  });
  return [
    new Promise((resolve) => socket.bind(PORT, address, resolve)),
    new Promise((resolve) => server.listen(PORT, address, resolve)),
  ];
}

/** Those of the client, which end with it. */
const sockets = new Map<number, Socket | Stream>();

function send({ key = 0, hex = "", isStream = false }: Order): void {
  const message = Buffer.from(hex, "hex");
  const known = sockets.get(key);
  const onReply = (reply: Buffer): void => print({ key, at: "client", isStream, hex: reply.toString("hex") });
  if (isStream) {
    const stream = known === undefined ? connect(PORT, DOCKER_RESOLVER) : (known as Stream);
    if (known === undefined) {
      onEachMessage(stream, onReply);
      stream.on("close", () => print({ key, at: "closed", isStream, hex: "" }));
    }
    sockets.set(key, stream);
    stream.write(withLength(message));
    return;
  }
  const socket = known === undefined ? createSocket("udp4", onReply) : (known as Socket);
  sockets.set(key, socket);
  socket.send(message, PORT, DOCKER_RESOLVER);
}

function printEcho(key: number): void {
  print({ key, at: "echo", isStream: false, hex: "" });
}

if (role === "server") await Promise.all(addresses.flatMap(listenAt));
print({ key: 0, at: "ready", isStream: false, hex: "" });
const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => {
  const order = JSON.parse(line) as Order;
  const { echo } = order;
  // Behind what waits at the sockets.
  if (echo !== undefined) setImmediate(() => setImmediate(printEcho, echo));
  else if (role === "client") send(order);
  else answering.get(order.key ?? 0)?.(order);
});
lines.on("close", () => process.exit());
