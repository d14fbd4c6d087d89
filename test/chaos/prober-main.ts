// Process of prober.ts. It ends with the pipe to the run, and in any case after its time.

import { createSocket } from "node:dgram";
import { once } from "node:events";
import { connect } from "node:net";
import { createInterface } from "node:readline";

import { type DecodedPacket, decode, encode } from "dns-packet";

import {
  type ProberReport,
  type ProberOptions,
  EVERY_MS,
  type Stall,
  type ProbeResult,
  type ProbeMode,
} from "./prober.ts";
import { monotonicMs } from "./monotonic.ts";

const RESOLVER = "127.0.0.11";
const PORT = 53;
const TICK_MS = 25;
const REPORT_EVERY_MS = 200;
// A timer that fires later than this means that the process was not scheduled.
const STALL_MS = 20;
const LOAD_EVERY_MS = 30;
const RCODES = ["no data", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED"];
const LENGTH_OCTETS = 2;
const HEADER_OCTETS = 12;

const { name, neighbours, giveUpMs, forMs } = JSON.parse(process.argv[2] ?? "") as ProberOptions;

let probes: ProbeResult[] = [];
let stalls: Stall[] = [];
let load: Record<string, number> = {};
let ids = 0;
let loadQueries = 0;

type End = (outcome: string | Buffer) => void;

// `done` is called once, when the probe has ended.
function begin(mode: ProbeMode, done: () => void): End {
  const startedMs = monotonicMs();
  return endOnce((outcome) => {
    done();
    const tookMs = Math.round((monotonicMs() - startedMs) * 10) / 10;
    probes.push({ mode, startedMs, tookMs, ...read(outcome) });
  });
}

function endOnce(end: End): End {
  let isOver = false;
  const timer = setTimeout(() => finish("timeout"), giveUpMs);
  const finish: End = (outcome) => {
    if (isOver) return;
    isOver = true;
    clearTimeout(timer);
    end(outcome);
  };
  return finish;
}

function read(outcome: string | Buffer): Pick<ProbeResult, "outcome" | "addresses" | "ttl"> {
  if (typeof outcome === "string") return { outcome };
  let packet: DecodedPacket;
  try {
    packet = decode(outcome);
  } catch {
    return { outcome: "no message" };
  }
  const records = (packet.answers ?? []).flatMap((record) => (record.type === "A" ? [record] : []));
  if (records.length === 0) return { outcome: RCODES[(packet.flags ?? 0) & 15] ?? "another rcode" };
  return { outcome: "answer", addresses: records.map(({ data }) => data), ttl: records[0]?.ttl ?? 0 };
}

function query(id: number, of: string): Buffer {
  return encode({ type: "query", id, flags: 0x100, questions: [{ type: "A", name: of }] });
}

// -1, which is no id, for a message that is too short.
function idOf(message: Buffer): number {
  return message.length < HEADER_OCTETS ? -1 : message.readUInt16BE(0);
}

function codeOf(error: NodeJS.ErrnoException): string {
  return error.code ?? error.message;
}

function nextId(): number {
  return (ids += 1) & 0xffff;
}

function queryFresh(of: string, beginWith: (done: () => void) => End): void {
  const id = nextId();
  const socket = createSocket("udp4");
  const end = beginWith(() => socket.close());
  socket.on("error", (error) => end(codeOf(error)));
  socket.on("message", (message) => (idOf(message) === id ? end(message) : undefined));
  socket.once("connect", () =>
    socket.send(query(id, of), (error) => (error === null ? undefined : end(codeOf(error)))),
  );
  socket.connect(PORT, RESOLVER);
}

// The reused socket, and the probes that wait for its replies.
class ReusedSocket {
  readonly #waiting = new Map<number, End>();
  readonly #socket = createSocket("udp4");

  static async open(): Promise<ReusedSocket> {
    const reused = new ReusedSocket();
    reused.#socket.on("error", (error) => reused.#refuse(error));
    reused.#socket.on("message", (message) => reused.#waiting.get(idOf(message))?.(message));
    reused.#socket.connect(PORT, RESOLVER);
    await once(reused.#socket, "connect");
    return reused;
  }

  send(): void {
    const id = nextId();
    const end = begin("reused", () => this.#waiting.delete(id));
    this.#waiting.set(id, end);
    this.#socket.send(query(id, name), (error) => (error === null ? undefined : this.#refuse(error)));
  }

  // Pending probes time out.
  close(): void {
    this.#socket.close();
  }

  // The kernel does not report which query was refused; it is taken to be the last one.
  #refuse(error: NodeJS.ErrnoException): void {
    [...this.#waiting.values()].at(-1)?.(codeOf(error));
  }
}

function queryByTcp(): void {
  const connection = connect(PORT, RESOLVER);
  const end = begin("tcp", () => connection.destroy());
  let received = Buffer.alloc(0);
  connection.on("error", (error) => end(codeOf(error)));
  connection.on("close", () => end("closed"));
  connection.on("data", (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    const length = received.length < LENGTH_OCTETS ? Infinity : received.readUInt16BE(0);
    if (received.length >= LENGTH_OCTETS + length) end(received.subarray(LENGTH_OCTETS));
  });
  connection.once("connect", () => {
    const message = query(nextId(), name);
    const length = Buffer.alloc(LENGTH_OCTETS);
    length.writeUInt16BE(message.length);
    connection.write(Buffer.concat([length, message]));
  });
}

// Alternates a neighbour's name, a cached name and a new name.
function queryForLoad(): void {
  const turn = (loadQueries += 1);
  const kinds = [
    ["neighbour", neighbours[turn % neighbours.length] ?? name],
    ["cached", `cached${turn % 20}.chaos.test`],
    ["new", `new${turn}.${name}.chaos.test`],
  ] as const;
  const [kind, of] = kinds[turn % kinds.length] ?? kinds[0];
  queryFresh(of, (done) =>
    endOnce((outcome) => {
      done();
      const what = `${kind}: ${read(outcome).outcome}`;
      load[what] = (load[what] ?? 0) + 1;
    }),
  );
}

function report(): void {
  const line: ProberReport = { probes, stalls, load };
  [probes, stalls, load] = [[], [], {}];
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

let reused = await ReusedSocket.open();

const schedule: [everyMs: number, send: () => void][] = [
  [EVERY_MS.fresh, () => queryFresh(name, (done) => begin("fresh", done))],
  [EVERY_MS.reused, () => reused.send()],
  [EVERY_MS.tcp, queryByTcp],
  [LOAD_EVERY_MS, queryForLoad],
];
const due = schedule.map(([everyMs, send]) => ({ everyMs, send, nextMs: monotonicMs() }));

let lastMs = monotonicMs();
const ticks = setInterval(() => {
  const now = monotonicMs();
  if (now - lastMs > TICK_MS + STALL_MS) stalls.push({ fromMs: lastMs + TICK_MS, toMs: now });
  lastMs = now;
  for (const one of due) {
    if (one.nextMs > now) continue;
    // Missed probes are not sent later.
    one.nextMs = Math.max(one.nextMs + one.everyMs, now);
    one.send();
  }
}, TICK_MS);
const reports = setInterval(report, REPORT_EVERY_MS);
report();

function leave(): void {
  clearInterval(ticks);
  clearInterval(reports);
  clearTimeout(timer);
  report();
  process.stdout.end(() => process.exit(0));
}

const timer = setTimeout(leave, forMs);
for await (const _order of createInterface({ input: process.stdin })) {
  // The only command: replace the reused socket.
  const old = reused;
  reused = await ReusedSocket.open();
  old.close();
}
leave();
