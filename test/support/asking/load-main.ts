// A client under load, to be run inside a container's network namespace: so many queries a second, each from a socket of
// its own or all from one that is kept, for so long, and then what became of them. Bounded in count and in time.

import { createSocket } from "node:dgram";
import { writeSync } from "node:fs";

import { decode, encode } from "dns-packet";

const [name = "", perSecond = "100", forMs = "1000", kept = "fresh"] = process.argv.slice(2);
const TICK_MS = 5;
const ANSWER_WITHIN_MS = 1_000;

// Milliseconds of the epoch at which queries were sent that failed, by how.
const failures: { readonly atMs: number; readonly how: string }[] = [];
let asked = 0;
let answered = 0;

function ask(): void {
  asked++;
  const atMs = Date.now();
  const socket = createSocket("udp4");
  const end = (how: string | undefined): void => {
    clearTimeout(timer);
    socket.close();
    if (how === undefined) answered++;
    else failures.push({ atMs, how });
  };
  const timer = setTimeout(() => end("timeout"), ANSWER_WITHIN_MS);
  socket.on("error", (error: NodeJS.ErrnoException) => end(error.code ?? "error"));
  socket.on("message", (message) => end(verdictOf(message)));
  socket.connect(53, "127.0.0.11", () => socket.send(query(asked)));
}

// One socket for all: a client whose five-tuple never changes. A query is lost if the next one is answered first.
function keepAsking(): () => void {
  const socket = createSocket("udp4");
  const waiting = new Map<number, number>();
  socket.on("error", () => undefined);
  socket.on("message", (message) => {
    const id = message.readUInt16BE(0);
    if (!waiting.delete(id)) return;
    if (verdictOf(message) === undefined) answered++;
  });
  socket.connect(53, "127.0.0.11");
  setTimeout(
    () => {
      for (const atMs of waiting.values()) failures.push({ atMs, how: "unanswered" });
      socket.close();
    },
    Number(forMs) + ANSWER_WITHIN_MS,
  );
  return () => {
    const id = ++asked & 0xffff;
    waiting.set(id, Date.now());
    // A refusal is told by the next send; the query it belongs to stays unanswered, which is what is counted.
    try {
      socket.send(query(id), () => undefined);
    } catch {
      waiting.set(id, Date.now());
    }
  };
}

function query(id: number): Buffer {
  return encode({ type: "query", id: id & 0xffff, flags: 0x100, questions: [{ type: "A", name }] });
}

function verdictOf(message: Buffer): string | undefined {
  const packet = decode(message);
  if ((packet.answers ?? []).length > 0) return undefined;
  return `rcode ${(message[3] ?? 0) & 15}, no answer`;
}

const startMs = performance.now();
const send = kept === "kept" ? keepAsking() : ask;
const timer = setInterval(() => {
  const elapsedMs = performance.now() - startMs;
  if (elapsedMs >= Number(forMs)) clearInterval(timer);
  const due = Math.min(elapsedMs, Number(forMs)) * (Number(perSecond) / 1000);
  while (asked < due) send();
}, TICK_MS);

// A long report is more than a pipe holds, and nobody waits for the rest of it at the end of a process.
process.on("exit", () => {
  const report = Buffer.from(`${JSON.stringify({ asked, answered, failures })}\n`);
  for (let at = 0; at < report.length;) at += writeSync(1, report, at);
});
