// The victim's program, in its container's namespace: three independent loops query a container name, a cached name and new
// names, 30 queries a second in total, each from a new socket. A line on stdin ends a period; its result is a line on stdout
// once all its queries have ended. Arguments: the address of "web", and the number of its first new name.

import { createSocket } from "node:dgram";
import { createInterface } from "node:readline";

import { decode, encode } from "dns-packet";

import type { Period } from "./victim.ts";
import { WORLD } from "./world.ts";

const [web = "", first = "0"] = process.argv.slice(2);
const PER_SECOND = 30;
const TICK_MS = 10;
/** The C library's timeout before it retries. */
const WAIT_TIMEOUT_MS = 5_000;
const EXAMPLES_MAX = 20;

type Counts = { sent: number; lost: string[]; wrong: string[]; pending: number; isOver: boolean };

let period = begin();
let number = Number(first);

function begin(): Counts {
  return { sent: 0, lost: [], wrong: [], pending: 0, isOver: false };
}

function report(counts: Counts): void {
  if (!counts.isOver || counts.pending > 0) return;
  const { sent, lost, wrong } = counts;
  const result: Period = {
    sent,
    lost: lost.length,
    wrong: wrong.length,
    examples: [...wrong, ...lost].slice(0, EXAMPLES_MAX),
  };
  process.stdout.write(`${JSON.stringify(result)}\n`);
}

function query(name: string, right: string): void {
  const counts = period;
  counts.sent++;
  counts.pending++;
  const socket = createSocket("udp4");
  let isDone = false;
  const end = (list: string[] | undefined, how: string): void => {
    if (isDone) return;
    isDone = true;
    clearTimeout(timer);
    socket.close();
    list?.push(`${name}: ${how}`);
    counts.pending--;
    report(counts);
  };
  // A reply that has arrived while this process did not run is read first.
  const timer = setTimeout(() => setImmediate(() => end(counts.lost, "no answer")), WAIT_TIMEOUT_MS);
  const id = Math.floor(Math.random() * 0x10000);
  socket.on("error", (error) => end(counts.lost, error.message));
  socket.on("message", (message) => {
    const { id: answered, flags = 0, answers = [] } = decode(message);
    if (answered !== id) return;
    const data = answers.map((answer) => (answer.type === "A" ? answer.data : answer.type));
    if ((flags & 15) === SERVFAIL || (flags & 15) === REFUSED) end(counts.lost, `rcode ${flags & 15}`);
    else if (data.length === 1 && data[0] === right) end(undefined, "");
    else end(counts.wrong, `rcode ${flags & 15}, ${data.join(" ")} instead of ${right}`);
  });
  const packet = encode({ type: "query", id, flags: 0x100, questions: [{ type: "A", name }] });
  socket.connect(53, "127.0.0.11", () => socket.send(packet, () => undefined));
}

const SERVFAIL = 2;
const REFUSED = 5;

function nextNew(): [string, string] {
  const name = `n${(number += 1)}.ok.test`;
  return [name, textOf(name)];
}

function textOf(name: string): string {
  return [...(WORLD.addressOf(name) ?? [])].join(".");
}

const KINDS: readonly (() => [string, string])[] = [
  () => ["web", web],
  () => [WORLD.kept, textOf(WORLD.kept)],
  nextNew,
];
const startMs = performance.now();
for (const kind of KINDS) {
  let sent = 0;
  setInterval(() => {
    const due = ((performance.now() - startMs) / 1000) * (PER_SECOND / KINDS.length);
    for (; sent < due; sent++) query(...kind());
  }, TICK_MS);
}
for await (const _ of createInterface({ input: process.stdin })) {
  const over = period;
  period = begin();
  over.isOver = true;
  report(over);
}
process.exit(0);
