// The host's name server: it knows nN.ok.test (10.0.0.0 + N) and a few other names below ok.test, and hands whatever is
// asked below evil.test to the attacker's own server, from which it brings back every octet: as many routers do. Arguments:
// its address, and that of the attacker. It ends with the pipe to the test.

import { createSocket } from "node:dgram";
import { type Socket, connect, createServer } from "node:net";

import { withLength } from "../../src/lib/framing.ts";
import { aPointer, aRecord, aReplyTo, TYPE } from "../support/builders.ts";
import { onEachMessage } from "../support/framed.ts";
import { nameIn } from "./inside/serving.ts";
import { WORLD } from "./world.ts";

const [address = "", attacker = ""] = process.argv.slice(2);
const NXDOMAIN = 3;
const RELAY_MS = 10_000;
const RECEIVE_BYTES = 4 * 1024 * 1024;
const RELAYS_MAX = 2_000;
let relays = 0;

function answerTo(query: Buffer): Buffer {
  const data = WORLD.addressOf(nameIn(query));
  if (data === undefined) return aReplyTo(query, NXDOMAIN);
  return aReplyTo(query, 0, [aRecord({ owner: aPointer(12), type: TYPE.A, ttl: 600, data })]);
}

function isOfAttacker(query: Buffer): boolean {
  return nameIn(query).endsWith(".evil.test");
}

const socket = createSocket({ type: "udp4" });
socket.on("message", (query, { port, address: peer }) => {
  if (query.length < 17) return;
  if (!isOfAttacker(query)) {
    socket.send(answerTo(query), port, peer, () => undefined);
    return;
  }
  if (relays >= RELAYS_MAX) return;
  relays++;
  const relay = createSocket("udp4");
  const timer = setTimeout(() => relay.close(), RELAY_MS);
  relay.on("close", () => relays--);
  relay.on("error", () => undefined);
  relay.on("message", (reply) => {
    socket.send(reply, port, peer, () => undefined);
    clearTimeout(timer);
    relay.close();
  });
  relay.send(query, 53, attacker, () => undefined);
});

const server = createServer((connection) => {
  let relay: Socket | undefined;
  connection.once("close", () => relay?.destroy());
  onEachMessage(connection, (query) => {
    if (!isOfAttacker(query)) {
      connection.write(withLength(answerTo(query)));
      return;
    }
    relay ??= relayFor(connection);
    relay.write(withLength(query));
  });
});

// What the attacker's server writes goes on as it came, and so does its end.
function relayFor(connection: Socket): Socket {
  const relay = connect(53, attacker);
  relay.on("error", () => connection.destroy());
  relay.setTimeout(RELAY_MS, () => relay.destroy());
  relay.pipe(connection);
  return relay;
}

await new Promise<void>((resolve) => socket.bind(53, address, resolve));
// As much as it may; a container of a test asks faster than one process answers.
socket.setRecvBufferSize(RECEIVE_BYTES);
await new Promise<void>((resolve) => server.listen(53, address, resolve));
console.log("ready");
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
