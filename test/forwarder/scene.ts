/**
 * What a scenario plays on: a container that dns11 serves, servers that answer only what the scenario says, and a clock that it moves.
 * Each scenario has a zone and servers of its own, so none meets what another one has left in the cache or knows of a server.
 */
import assert from "node:assert/strict";
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";

import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { SYSTEM_PATH } from "../support/program/command.ts";
import { type Dns11, WITHOUT_KEEPER, startDns11 } from "../support/program/dns11.ts";
import { CLOCK_SIGNAL, SteppedClock } from "../support/program/stepped-clock.ts";
import { makeFolder } from "../support/rig/folder.ts";
import { inNetns } from "../support/rig/netns.ts";
import { unrefChild } from "../support/rig/reaper.ts";
import { inTime, waitFor } from "../support/rig/wait.ts";
import { type OptParts, type QueryParts, TYPE, aName, aQuery, aRecord, anOpt } from "../support/scripted/builders.ts";
import { type Reply, readName, readReply } from "../unit/support/reply.ts";
import type { Scenario } from "./scenario.ts";

/** What a program prints: `key` is an exchange's, `at` the server's address or what has happened. */
export interface Packet {
  readonly key: number;
  readonly at: string;
  readonly isStream: boolean;
  readonly hex: string;
}

/** What it reads. */
export interface Order {
  readonly key?: number;
  readonly hex?: string;
  readonly isStream?: boolean;
  readonly isClosing?: boolean;
  /** Another address than the one that was asked. */
  readonly from?: string;
  readonly echo?: number;
}

const SERVERS_MAX = 3;
const RCODES = ["NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED"];
const RCODE_BITS = 15;
const QR = 0x8000;
const RA = 0x0080;
const TYPE_NAMES = new Map<number, string>(Object.entries(TYPE).map(([name, value]) => [value, name]));

class Program {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #ended: Promise<unknown>;
  readonly #echoes = new Map<number, () => void>();
  #echoed = 0;

  private constructor(netnsPath: string, args: readonly string[], onPacket: (packet: Packet) => void) {
    const program = fileURLToPath(new URL("./packets-main.js", import.meta.url));
    const [command = "", ...rest] = inNetns(netnsPath, process.execPath, [program, ...args]);
    const env = { ...process.env, PATH: SYSTEM_PATH };
    this.#child = spawn(command, rest, { stdio: ["pipe", "pipe", "inherit"], detached: true, env });
    this.#child.stdin.on("error", () => undefined);
    this.#ended = once(this.#child, "close");
    createInterface({ input: this.#child.stdout }).on("line", (line) => {
      const packet = JSON.parse(line) as Packet;
      if (packet.at === "ready" || packet.at === "echo") this.#echoes.get(packet.key)?.();
      else onPacket(packet);
    });
    unrefChild(this.#child);
  }

  static async start(netnsPath: string, args: readonly string[], onPacket: (packet: Packet) => void): Promise<Program> {
    const program = new Program(netnsPath, args, onPacket);
    await inTime(new Promise<void>((resolve) => program.#echoes.set(0, resolve)), "the program to be ready");
    return program;
  }

  order(order: Order): void {
    this.#child.stdin.write(`${JSON.stringify(order)}\n`);
  }

  /** Everything that it has printed until now has been read. */
  async caughtUp(): Promise<void> {
    const echo = (this.#echoed += 1);
    const heard = new Promise<void>((resolve) => this.#echoes.set(echo, resolve));
    this.order({ echo });
    await inTime(heard, "the echo of the program");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.stdin.end();
    await inTime(this.#ended, "the end of the program");
  }
}

/** The engine, the container, the programs and dns11 that all scenarios share. */
export class Stage implements AsyncDisposable {
  #engine!: Engine;
  #container!: Container;
  #client!: Program;
  #servers!: Program;
  #dns11: Dns11 | undefined;
  #clock!: SteppedClock;
  #passedMs = 0;
  #settings = "";
  readonly #folder = makeFolder("scenarios");
  readonly #scenes = new Map<string, Scene>();
  readonly #asked = new Map<number, Asked>();
  readonly #scenarios: readonly Scenario[];

  constructor(scenarios: readonly Scenario[]) {
    this.#scenarios = scenarios;
  }

  async start(): Promise<void> {
    this.#engine = await startEngine();
    await createNetwork(this.#engine, "n1");
    this.#container = await runContainer(this.#engine, { name: "client", networks: ["n1"] });
    this.#clock = new SteppedClock(join(this.#folder, "clock"));
    const addresses = this.#scenarios.flatMap((_, at) => addressesOf(at));
    this.#client = await Program.start(this.#container.netnsPath, ["client"], (packet) => this.#onReply(packet));
    this.#servers = await Program.start(this.#engine.netnsPath, ["server", ...addresses], (packet) => {
      this.#scenes.get(packet.at)?.onQuery(packet);
    });
  }

  async play(scenario: Scenario, at: number): Promise<void> {
    const scene = new Scene(this, at);
    for (const address of scene.addresses) this.#scenes.set(address, scene);
    await this.#configure(scenario.settings ?? []);
    await scenario.run(scene);
  }

  /** `onSend` is called when the message leaves: by then every query that has reached a server has been read. */
  ask(message: Buffer, isStream: boolean, onSend: () => void): Asked {
    const begun = this.caughtUp().then(onSend);
    const asked = new Asked(this.#asked.size + 1, isStream, (order) => this.#client.order(order), begun);
    this.#asked.set(asked.key, asked);
    asked.send(message);
    return asked;
  }

  answer(order: Order): void {
    this.#servers.order(order);
  }

  async caughtUp(): Promise<void> {
    await this.#servers.caughtUp();
  }

  /** dns11's clocks are so much later. Timers that run are not. */
  async pass(seconds: number): Promise<void> {
    this.#passedMs += seconds * 1_000;
    this.#clock.set(this.#passedMs, this.#passedMs);
    this.#dns11?.kill(CLOCK_SIGNAL);
    await waitFor("the clock to have moved", () => (this.#clock.isTaken ? true : undefined));
  }

  get dns11(): Dns11 {
    return this.#dns11 ?? assert.fail("it has not been started");
  }

  #onReply(packet: Packet): void {
    this.#asked.get(packet.key)?.onReply(packet);
  }

  /** Names of a scenario's zone go to its servers, all others nowhere. */
  async #configure(settings: readonly string[]): Promise<void> {
    const routes = this.#scenarios.flatMap(({ servers = 1 }, at) =>
      addressesOf(at)
        .slice(0, servers)
        .map((address) => `/${zoneOf(at)}/${address}`),
    );
    const text = ["version: 1", "answers: process", `dns: [${["//", ...routes].join(", ")}]`, ...settings].join("\n");
    if (text === this.#settings) return;
    this.#settings = text;
    const path = join(this.#folder, "dns11.yaml");
    writeFileSync(path, `${text}\n`);
    if (this.#dns11 !== undefined) {
      await this.#dns11.reload();
      return;
    }
    const env = { ...WITHOUT_KEEPER, ...this.#clock.env };
    this.#dns11 = await startDns11(this.#engine, { args: ["--config", path], env });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#dns11?.[Symbol.asyncDispose]();
    for (const each of [this.#client, this.#servers, this.#container, this.#engine]) await each[Symbol.asyncDispose]();
  }
}

function addressesOf(at: number): string[] {
  return Array.from({ length: SERVERS_MAX }, (_, server) => `127.10.${at + 1}.${server + 1}`);
}

function zoneOf(at: number): string {
  return `s${at + 1}.test`;
}

/** A scenario's own view. Names are relative to its zone, `@` is the zone itself. */
export class Scene {
  readonly zone: string;
  readonly addresses: readonly string[];
  readonly #stage: Stage;
  readonly #waiting: Received[] = [];
  readonly #received: Received[] = [];
  #onReceived: (() => void) | undefined;
  #said: Said | undefined;
  /** How many queries the clients have sent; and by its question and form, how many when it last reached a server. */
  #asks = 0;
  readonly #seen = new Map<string, number>();
  #ids = 0x4000;

  constructor(stage: Stage, at: number) {
    this.#stage = stage;
    this.zone = zoneOf(at);
    this.addresses = addressesOf(at);
  }

  get dns11(): Dns11 {
    return this.#stage.dns11;
  }

  name(label: string): string {
    if (label.endsWith(".")) return label;
    return label === "@" ? this.zone : `${label}.${this.zone}`;
  }

  /** A client asks. `"www A"`, or the parts of the message. */
  ask(question: string | QueryParts, { isStream = false, ...parts }: { isStream?: boolean } & QueryParts = {}): Asked {
    return this.askRaw(this.messageOf(question, parts), isStream);
  }

  messageOf(question: string | QueryParts, parts: QueryParts = {}): Buffer {
    const id = (this.#ids += 1);
    if (typeof question !== "string") return aQuery({ id, ...question });
    const [label = "", type = ""] = question.split(" ");
    return aQuery({ id, name: this.name(label), type: typeOf(type), ...parts });
  }

  /** The same, with the octets of the message. */
  askRaw(message: Buffer, isStream = false): Asked {
    return this.#stage.ask(message, isStream, () => this.#asks++);
  }

  /**
   * What the next query says that reaches a server of the scenario. On a busy machine a question may be sent once more before its answer
   * has come; only who waits for that, by `isAgain`, gets it.
   */
  async received(server?: number, { isAgain = false } = {}): Promise<Received> {
    const find = (): Received | undefined => {
      const at = this.#waiting.findIndex(
        (each) => (server === undefined || each.server === server) && (isAgain || !each.isRepeated),
      );
      return at === -1 ? undefined : this.#waiting.splice(at, 1)[0];
    };
    for (;;) {
      const found = find();
      if (found !== undefined) return found;
      await inTime(new Promise<void>((resolve) => (this.#onReceived = resolve)), "a query at a server");
    }
  }

  /** A client asks, a server is asked once and says this; what the client gets. */
  async exchange(question: string | QueryParts, said: Said, options: Parameters<Scene["ask"]>[1] = {}): Promise<Reply> {
    const asked = this.ask(question, options);
    (await this.received()).reply(said);
    return await asked.reply();
  }

  /** Every query that reaches a server is answered so, until the promise is kept. */
  async whileSaying<T>(said: Said, promise: Promise<T>): Promise<T> {
    this.#said = said;
    for (const each of this.#waiting.splice(0)) each.reply(said);
    try {
      return await promise;
    } finally {
      this.#said = undefined;
    }
  }

  /** Nobody has asked a server since the last look. */
  async nothingReceived(): Promise<void> {
    await this.#stage.caughtUp();
    assert.deepEqual(
      this.#waiting.filter(({ isRepeated }) => !isRepeated).map(({ text }) => text),
      [],
    );
  }

  /** The questions that the servers got, in their order, each once. */
  async allReceived(): Promise<readonly Received[]> {
    await this.#stage.caughtUp();
    return this.#received.filter(({ isRepeated }) => !isRepeated);
  }

  /** How many queries they got. */
  async countReceived(): Promise<number> {
    await this.#stage.caughtUp();
    return this.#received.length;
  }

  async pass(seconds: number): Promise<void> {
    await this.#stage.pass(seconds);
  }

  /** The records of a reply, as text that names the zone `@`. */
  texts(records: Reply["answers"]): string[] {
    return records.map((record) => {
      const owner = record.owner.replace(new RegExp(`\\.?${this.zone}$`, "i"), "") || "@";
      return `${owner} ${TYPE_NAMES.get(record.type) ?? record.type} ${addressText(record.type, record.data)}`.trim();
    });
  }

  onQuery(packet: Packet): void {
    const server = this.addresses.indexOf(packet.at) + 1;
    const received = new Received(this, packet, server, (order) => this.#stage.answer(order));
    received.isRepeated = this.#seen.get(received.form) === this.#asks;
    this.#seen.set(received.form, this.#asks);
    this.#received.push(received);
    if (this.#said !== undefined) return received.reply(this.#said);
    this.#waiting.push(received);
    this.#onReceived?.();
  }
}

/** A record as text, `www 60 A 192.0.2.1`, or its octets. */
type RecordText = string | Buffer;

/** What a server says. */
export interface Said {
  readonly rcode?: number;
  readonly answers?: readonly RecordText[];
  readonly authorities?: readonly RecordText[];
  readonly additionals?: readonly RecordText[];
  readonly opt?: OptParts;
  /** The header's flags beside QR, RD and RA. */
  readonly flags?: number;
  /** XOR on the header's ID. */
  readonly idMask?: number;
  /** Another question than the one that was asked; empty: none. */
  readonly question?: Buffer;
  /** Behind everything else. */
  readonly tail?: Buffer;
  /** The sender's address, where it is not the one that was asked. */
  readonly from?: string;
  /** The octets of the whole, but for the ID. */
  readonly raw?: Buffer;
}

/** A query at a server. */
export class Received {
  readonly server: number;
  readonly isStream: boolean;
  readonly message: Buffer;
  /** It has come in the same form before, and no client has asked since. */
  isRepeated = false;
  readonly #scene: Scene;
  readonly #packet: Packet;
  readonly #order: (order: Order) => void;

  constructor(scene: Scene, packet: Packet, server: number, order: (order: Order) => void) {
    this.#scene = scene;
    this.#packet = packet;
    this.#order = order;
    this.server = server;
    this.isStream = packet.isStream;
    this.message = Buffer.from(packet.hex, "hex");
  }

  get query(): Reply {
    return readReply(this.message);
  }

  /** Its question, as text. */
  get text(): string {
    const { question } = this.query;
    const name = question?.name.replace(new RegExp(`\\.?${this.#scene.zone}$`, "i"), "") || "@";
    return `${name} ${TYPE_NAMES.get(question?.type ?? 0) ?? question?.type}`;
  }

  /** What a repetition has in common. */
  get form(): string {
    return `${this.server} ${this.isStream} ${this.opt === undefined} ${this.text}`;
  }

  get opt(): Reply["additionals"][number] | undefined {
    return this.query.additionals.find(({ type }) => type === TYPE.OPT);
  }

  reply(said: Said = {}): void {
    const { from } = said;
    const hex = this.#messageOf(said).toString("hex");
    this.#order({ key: this.#packet.key, hex, ...(from !== undefined && { from }) });
  }

  /** Ends the connection without a reply. */
  close(): void {
    this.#order({ key: this.#packet.key, isClosing: true });
  }

  #messageOf({ raw, question, idMask = 0, flags = 0, rcode = 0, opt, tail, ...sections }: Said): Buffer {
    const id = this.message.readUInt16BE(0) ^ idMask;
    if (raw !== undefined) {
      const message = Buffer.from(raw);
      if (message.length >= 2) message.writeUInt16BE(id, 0);
      return message;
    }
    const asked = question ?? this.message.subarray(12, readName(this.message, 12).end + 4);
    const parts = [sections.answers, sections.authorities, sections.additionals].map((records = []) =>
      records.map((each) => recordOf(each, this.#scene)),
    );
    const [answers = [], authorities = [], additionals = []] = parts;
    if (opt !== undefined) additionals.push(anOpt(opt));
    const header = Buffer.alloc(12);
    const recursion = (this.message.readUInt16BE(2) & 0x0100) | RA;
    for (const [at, value] of [
      id,
      QR | recursion | flags | rcode,
      asked.length === 0 ? 0 : 1,
      answers.length,
      authorities.length,
      additionals.length,
    ].entries())
      header.writeUInt16BE(value, at * 2);
    return Buffer.concat([header, asked, ...answers, ...authorities, ...additionals, tail ?? Buffer.alloc(0)]);
  }
}

/** A client's query, and what came back. */
export class Asked {
  readonly key: number;
  readonly #isStream: boolean;
  readonly #order: (order: Order) => void;
  readonly #packets: Packet[] = [];
  /** It may send. */
  readonly #begun: Promise<void>;
  #onPacket: (() => void) | undefined;

  constructor(key: number, isStream: boolean, order: (order: Order) => void, begun: Promise<void>) {
    this.key = key;
    this.#isStream = isStream;
    this.#order = order;
    this.#begun = begun;
  }

  /** Another message by the same socket. */
  send(message: Buffer): void {
    void this.#begun.then(() => this.#order({ key: this.key, hex: message.toString("hex"), isStream: this.#isStream }));
  }

  async message(): Promise<Buffer> {
    while (this.#packets.length === 0)
      await inTime(new Promise<void>((resolve) => (this.#onPacket = resolve)), "a reply");
    const packet = this.#packets.shift();
    assert.equal(packet?.at, "client", "the connection was closed");
    return Buffer.from(packet.hex, "hex");
  }

  async reply(): Promise<Reply> {
    return readReply(await this.message());
  }

  /** Whether something has arrived that nobody has read. */
  get hasMore(): boolean {
    return this.#packets.length > 0;
  }

  onReply(packet: Packet): void {
    this.#packets.push(packet);
    this.#onPacket?.();
  }
}

export function rcodeOf(reply: Reply): string {
  return RCODES[reply.rcode] ?? `RCODE${reply.rcode}`;
}

/** The whole response code, with the bits that OPT has. */
export function extendedRcodeOf(reply: Reply): number {
  const opt = reply.additionals.find(({ type }) => type === TYPE.OPT);
  return (opt === undefined ? 0 : opt.ttl >>> 24) * (RCODE_BITS + 1) + reply.rcode;
}

export function optionsOf(reply: Reply): ReadonlyMap<number, Buffer> {
  const data = reply.additionals.find(({ type }) => type === TYPE.OPT)?.data ?? Buffer.alloc(0);
  const options = new Map<number, Buffer>();
  for (let at = 0; at < data.length; at += 4 + data.readUInt16BE(at + 2))
    options.set(data.readUInt16BE(at), data.subarray(at + 4, at + 4 + data.readUInt16BE(at + 2)));
  return options;
}

function typeOf(text: string): number {
  return TYPE[text as keyof typeof TYPE] ?? Number(text.replace(/^TYPE/, ""));
}

function recordOf(text: RecordText, scene: Scene): Buffer {
  if (typeof text !== "string") return text;
  const [owner = "", ttl = "", type = "", ...words] = text.split(" ");
  return aRecord({ owner: scene.name(owner), type: typeOf(type), ttl: Number(ttl), data: dataOf(type, words, scene) });
}

function dataOf(type: string, words: readonly string[], scene: Scene): Buffer {
  const [first = ""] = words;
  if (type === "A") return Buffer.from(first.split(".").map(Number));
  if (type === "AAAA") return Buffer.from(first.replaceAll(":", "").padEnd(32, "0"), "hex");
  if (type === "CNAME" || type === "NS" || type === "PTR" || type === "DNAME") return aName(scene.name(first));
  if (type === "MX") return Buffer.concat([Buffer.of(0, Number(first)), aName(scene.name(words[1] ?? ""))]);
  if (type === "TXT") return Buffer.concat([Buffer.of(first.length), Buffer.from(first)]);
  if (type === "SOA") {
    const numbers = Buffer.alloc(20);
    numbers.writeUInt32BE(Number(first), 16);
    return Buffer.concat([aName(scene.name("ns")), aName(scene.name("admin")), numbers]);
  }
  return Buffer.from(first, "hex");
}

/** Empty for other types. */
function addressText(type: number, data: Buffer): string {
  if (type === TYPE.A) return data.join(".");
  return type === TYPE.AAAA ? (data.toString("hex").match(/.{4}/g) ?? []).join(":") : "";
}
