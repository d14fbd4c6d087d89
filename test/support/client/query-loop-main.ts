/**
 * Process that sends the same query at a steady rate until its input ends; see query-loop.ts. It prints "started" after
 * the first query. Bounded in count and in time.
 */
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";

import { type DecodedPacket, decode, encode } from "dns-packet";

import type { QueryEnd, QueryLoopRequest } from "./query-loop.ts";

const TICK_MS = 5;
/**
 * Limit of queries sent at once after the process was not scheduled. It does not catch up on all of them: a server
 * would lose packets of a burst that no client sends.
 */
const BURST_MAX = 16;
/** Longer than any reply takes on a busy machine, also while a process takes over; a lost one never arrives. */
const GIVE_UP_MS = 20_000;
const REFUSED_WITHIN_MS = 50;
const RCODES = ["NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED"];
const ERRORS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "refused",
  EHOSTUNREACH: "unreachable",
  ENETUNREACH: "unreachable",
};

const options = JSON.parse(process.argv[2] ?? "") as QueryLoopRequest;
const {
  server = "127.0.0.11",
  name,
  isEachNew = false,
  forMs,
  port = 53,
  type = "A",
  perSecond = 200,
  sourcePort,
} = options;
const family = server.includes(":") ? "udp6" : "udp4";

const ends: QueryEnd[] = [];
type Waiting = { readonly startMs: number; readonly end: (outcome: string) => void };

/** By query id; an id is reused only long after its query has timed out. */
const waiting = new Map<number, Waiting>();
let sent = 0;

/** The first of reply, error and timeout counts. */
function begin(id: number, onEnd: () => void): void {
  const [atMs, startMs] = [Date.now(), performance.now()];
  const index = ends.push({ atMs, tookMs: 0, outcome: "unfinished" }) - 1;
  const timer = setTimeout(() => waiting.get(id)?.end("timeout"), GIVE_UP_MS);
  const end = (outcome: string): void => {
    clearTimeout(timer);
    waiting.delete(id);
    ends[index] = { atMs, tookMs: Math.round(performance.now() - startMs), outcome };
    onEnd();
  };
  waiting.set(id, { startMs, end });
}

function send(socket: Socket, id: number, fail: (outcome: string) => void): void {
  const asked = isEachNew ? `n${sent}.${name}` : name;
  const query = encode({ type: "query", id, flags: 0x100, questions: [{ type, name: asked }] });
  socket.send(query, (error) => (error === null ? undefined : fail(errorOutcome(error))));
}

function receive(message: Buffer): void {
  waiting.get(message.readUInt16BE(0))?.end(outcomeOf(decode(message)));
}

function queryFromNewSocket(): void {
  const id = (sent += 1) & 0xffff;
  const socket = createSocket(family);
  begin(id, () => socket.close());
  const fail = (outcome: string): void => waiting.get(id)?.end(outcome);
  socket.on("error", (error) => fail(errorOutcome(error)));
  socket.on("message", receive);
  // By the event: a callback would also be called after a failure.
  socket.once("connect", () => send(socket, id, fail));
  socket.connect(port, server);
}

/**
 * An ICMP error does not name the query. It arrives at once, on its own or with the next send, so it is attributed to
 * the queries sent within the last moments.
 */
function endRecent(outcome: string): void {
  for (const { startMs, end } of [...waiting.values()]) {
    if (performance.now() - startMs < REFUSED_WITHIN_MS) end(outcome);
  }
}

async function openSharedSocket(): Promise<() => void> {
  const socket = createSocket(family);
  socket.on("error", (error) => endRecent(errorOutcome(error)));
  socket.on("message", receive);
  await new Promise<void>((resolve) => socket.bind(sourcePort === "any" ? 0 : sourcePort, resolve));
  socket.connect(port, server);
  await once(socket, "connect");
  // The timers of the queries keep the process alive, not the open socket.
  socket.unref();
  return () => {
    const id = (sent += 1) & 0xffff;
    begin(id, () => undefined);
    send(socket, id, endRecent);
  };
}

function outcomeOf({ flags = 0, answers = [] }: DecodedPacket): string {
  const rcode = flags & 15;
  if (rcode === 0 && answers.length === 0) return "NODATA";
  return RCODES[rcode] ?? `rcode ${rcode}`;
}

function errorOutcome(error: NodeJS.ErrnoException): string {
  return ERRORS[error.code ?? ""] ?? error.code ?? error.message;
}

const sendQuery = sourcePort === undefined ? queryFromNewSocket : await openSharedSocket();
const beginMs = performance.now();
let endMs = forMs;
let skipped = 0;
process.stdin.on("end", () => (endMs = performance.now() - beginMs)).resume();
const timer = setInterval(() => {
  const elapsedMs = Math.min(performance.now() - beginMs, endMs);
  const due = Math.ceil(elapsedMs * (perSecond / 1000) - sent - skipped);
  skipped += Math.max(0, due - BURST_MAX);
  for (let count = 0; count < Math.min(due, BURST_MAX); count++) sendQuery();
  if (elapsedMs < endMs) return;
  clearInterval(timer);
  process.stdin.destroy();
}, TICK_MS);
sendQuery();
process.stdout.write("started\n");

// Not in an exit handler, where a long text would be cut off.
process.once("beforeExit", () => process.stdout.write(JSON.stringify(ends)));
