// Programs of witness.ts. As "client" it asks for names all the time, as "server" it answers below witness.test. One JSON value a line.

import { createSocket } from "node:dgram";
import { createInterface } from "node:readline";

import { DOCKER_RESOLVER } from "../../src/container/capture/capture.ts";
import { TYPE, aPointer, aQuery, aRecord, aReplyTo } from "../support/scripted/builders.ts";
import { readName, readReply } from "../unit/support/reply.ts";
import { type Answer, type Served, ZONES, countAddress, ownAddress } from "./history.ts";
import { monotonicMs } from "./monotonic.ts";

const PORT = 53;
const EVERY_MS = 25;
const GIVE_UP_MS = 5_000;
const TTL = 300;
// The first server is the slower one: its answer counts all the same.
const FIRST_TAKES_MS = 30;
const [role = "", ...words] = process.argv.slice(2);

function print(value: Answer | Served | "ready"): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

let asked = 0;

function ask(client: string, name: string): void {
  const startedMs = monotonicMs();
  const id = (asked += 1) % 0x10000;
  const query = aQuery({ id, name });
  const socket = createSocket("udp4");
  const timer = setTimeout(() => socket.close(), GIVE_UP_MS);
  // ECONNREFUSED while nobody listens.
  socket.on("error", () => undefined);
  socket.on("message", (message) => {
    clearTimeout(timer);
    socket.close();
    print({ client, name, startedMs, endedMs: monotonicMs(), ...read(message, id, name) });
  });
  socket.send(query, PORT, DOCKER_RESOLVER);
}

function read(message: Buffer, id: number, name: string): Pick<Answer, "addresses" | "ttl" | "isForeign"> {
  const reply = readReply(message);
  const found = reply.answers.filter(({ type }) => type === TYPE.A);
  return {
    addresses: found.map(({ data }) => data.join(".")),
    ttl: found[0]?.ttl ?? 0,
    // A refusal may have no question.
    isForeign: reply.id !== id || (reply.question?.name ?? name) !== name,
  };
}

function listen(address: string, server: number): Promise<void> {
  const socket = createSocket("udp4");
  socket.on("message", (query, from) => {
    const name = readName(query, 12).text;
    const said = name.endsWith(ZONES.counted) ? countAddress((asked += 1)) : ownAddress(name, server);
    const data = Buffer.from(said.split(".").map(Number));
    const isAddress = query.readUInt16BE(readName(query, 12).end) === TYPE.A;
    const reply = aReplyTo(query, 0, isAddress ? [aRecord({ owner: aPointer(12), type: TYPE.A, ttl: TTL, data })] : []);
    print({ server, name, from: from.address, atMs: monotonicMs(), said });
    setTimeout(() => socket.send(reply, from.port, from.address), server === 1 ? FIRST_TAKES_MS : 0);
  });
  return new Promise((resolve) => socket.bind(PORT, address, resolve));
}

const lines = createInterface({ input: process.stdin });
lines.on("close", () => process.exit());
if (role === "server") {
  await Promise.all(words.map((address, at) => listen(address, at + 1)));
} else {
  const [client = ""] = words;
  // The containers that come and go, as the run tells.
  let names: readonly string[] = [];
  lines.on("line", (line) => (names = JSON.parse(line) as readonly string[]));
  let turn = 0;
  setInterval(() => {
    turn++;
    const kinds = [
      () => `${client}-${turn}${ZONES.own}`,
      () => names[turn % Math.max(1, names.length)] ?? client,
      () => `now${ZONES.counted}`,
      () => `${client}-${turn}${ZONES.denied}`,
    ];
    ask(client, kinds[turn % kinds.length]?.() ?? client);
  }, EVERY_MS);
}
print("ready");
