/**
 * Load generator that queries ever new names, run inside a container's network namespace: a fixed number with a fixed
 * concurrency, or a rate for a fixed time. As a C library does, it uses a socket for each query and gives up after five
 * seconds. Bounded in count and in time.
 */
import { createSocket } from "node:dgram";

import { type DecodedPacket, decode, encode } from "dns-packet";

import { SLOW_MS, type StormOptions, type StormReport } from "./storm.ts";

const TICK_MS = 5;
const GIVE_UP_MS = 5_000;
const RCODES = ["NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED"];

const { suffix, load, port = 53 } = JSON.parse(process.argv[2] ?? "") as StormOptions;
const waitsMs: number[] = [];
const outcomes = new Map<string, number>();
let sent = 0;
const stormMs = performance.now();
const slow = { count: 0, untilMs: 0 };

async function queryOnce(): Promise<void> {
  const id = (sent += 1) & 0xffff;
  const question = { type: "A", name: `q${sent}.${suffix}` } as const;
  const startMs = performance.now();
  const outcome = await new Promise<string>((resolve) => {
    const socket = createSocket("udp4");
    const end = (result: string): void => {
      clearTimeout(timer);
      socket.close();
      resolve(result);
    };
    const timer = setTimeout(() => end("timeout"), GIVE_UP_MS);
    socket.on("error", (error: NodeJS.ErrnoException) => end(error.code ?? error.message));
    // Ignore replies to whatever used this port before, as a C library does.
    socket.on("message", (message) => (message.readUInt16BE(0) === id ? end(outcomeOf(decode(message))) : undefined));
    const query = encode({ type: "query", id, flags: 0x100, questions: [question] });
    socket.connect(port, "127.0.0.11", () => socket.send(query));
  });
  const waitMs = performance.now() - startMs;
  waitsMs.push(waitMs);
  if (waitMs > SLOW_MS) {
    slow.count++;
    slow.untilMs = Math.max(slow.untilMs, Math.round(startMs - stormMs));
  }
  outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
}

/** The addresses, or the reason why there are none. */
function outcomeOf({ flags = 0, answers = [] }: DecodedPacket): string {
  const addresses = answers.flatMap((record) => (record.type === "A" ? [record.data] : []));
  const rcode = flags & 15;
  return addresses.length > 0 ? addresses.join(" ") : (RCODES[rcode] ?? `rcode ${rcode}`);
}

async function queryConcurrently(count: number, atOnce: number): Promise<void> {
  const worker = async (): Promise<void> => {
    while (sent < count) await queryOnce();
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

async function queryAtRate(perSecond: number, forMs: number): Promise<void> {
  const startMs = performance.now();
  const queries: Promise<void>[] = [];
  await new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      const elapsedMs = Math.min(performance.now() - startMs, forMs);
      while (sent < elapsedMs * (perSecond / 1000)) queries.push(queryOnce());
      if (elapsedMs < forMs) return;
      clearInterval(timer);
      resolve();
    }, TICK_MS);
  });
  await Promise.all(queries);
}

if ("count" in load) await queryConcurrently(load.count, load.atOnce);
else await queryAtRate(load.perSecond, load.forMs);
const sorted = waitsMs.toSorted((a, b) => a - b);
const quantile = (q: number): number =>
  Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? 0);
const report: StormReport = {
  sent,
  outcomes: Object.fromEntries(outcomes),
  p50Ms: quantile(0.5),
  p99Ms: quantile(0.99),
  maxMs: quantile(1),
  slow,
};
process.stdout.write(JSON.stringify(report));
