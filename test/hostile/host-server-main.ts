// The host's nameserver: it resolves nN.ok.test (10.0.0.0 + N) and a few other names below ok.test. It forwards queries for the
// attackers' zones to their servers and relays the replies unchanged, as many routers do. Arguments: its address, and
// ZONE=ADDRESS for each attacker. It exits when the pipe to the test closes.

import { createSocket } from "node:dgram";
import { type Socket, connect, createServer } from "node:net";

import { withLength } from "../../src/base/lib/stream-reader.ts";
import { aPointer, aRecord, aReplyTo, TYPE } from "../support/scripted/builders.ts";
import { onEachMessage } from "../support/rig/framed.ts";
import { nameIn } from "./inside/serving.ts";
import { WORLD } from "./world.ts";

const [address = "", ...zones] = process.argv.slice(2);
const ATTACKERS = new Map(zones.map((zone) => zone.split("=", 2) as [string, string]));
const NXDOMAIN = 3;
const ADDITIONALS_AT = 10;
const RELAY_MS = 10_000;
const RECEIVE_BYTES = 4 * 1024 * 1024;
const RELAYS_MAX = 2_000;
let relays = 0;

function answerTo(query: Buffer): Buffer {
  if (nameIn(query).endsWith(WORLD.edns)) {
    const data = Buffer.of(127, 0, 0, query.readUInt16BE(ADDITIONALS_AT));
    return aReplyTo(query, 0, [aRecord({ owner: aPointer(12), type: TYPE.A, ttl: 0, data })]);
  }
  const data = WORLD.addressOf(nameIn(query));
  if (data === undefined) return aReplyTo(query, NXDOMAIN);
  return aReplyTo(query, 0, [aRecord({ owner: aPointer(12), type: TYPE.A, ttl: 600, data })]);
}

function attackerOf(query: Buffer): string | undefined {
  return ATTACKERS.get(nameIn(query).split(".").slice(-2).join("."));
}

const socket = createSocket({ type: "udp4" });
socket.on("message", (query, { port, address: peer }) => {
  if (query.length < 17) return;
  const attacker = attackerOf(query);
  if (attacker === undefined) {
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
    const attacker = attackerOf(query);
    if (attacker === undefined) {
      connection.write(withLength(answerTo(query)));
      return;
    }
    relay ??= relayFor(connection, attacker);
    relay.write(withLength(query));
  });
});

// Relays bytes and the end of the stream unchanged. Each client queries the names of one attacker only.
function relayFor(connection: Socket, attacker: string): Socket {
  const relay = connect(53, attacker);
  relay.on("error", () => connection.destroy());
  relay.setTimeout(RELAY_MS, () => relay.destroy());
  relay.pipe(connection);
  return relay;
}

await new Promise<void>((resolve) => socket.bind(53, address, resolve));
// As large as permitted: the test's containers query faster than one process answers.
socket.setRecvBufferSize(RECEIVE_BYTES);
await new Promise<void>((resolve) => server.listen(53, address, resolve));
console.log("ready");
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
