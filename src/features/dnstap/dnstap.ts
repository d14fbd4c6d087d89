import { HEADER_BYTES, isReply, QUESTIONS_AT } from "../../base/dns/header.ts";
import { presentation, POINTER } from "../../base/dns/name.ts";
import type { Log } from "../../base/log/log.ts";
import { addressBytes } from "../../base/model/address.ts";
import { PROBE_NAME_BYTES, sentProbes } from "../../base/model/probe-message.ts";
import type { Server } from "../../base/model/view.ts";
import type { Settings } from "../../config/settings.ts";
import { type ContainerFact, outgoingAddress } from "../../container/facts/fact.ts";
import { counter, gauge, sample } from "../../metrics/exposition.ts";
import type { Client, OutcomeNote } from "../../query/client/client.ts";
import { type Outcome, STAGE } from "../../query/record/outcome.ts";
import type { QueryTap } from "../../query/tap.ts";
import type { RunCore, Running } from "../contract.ts";
import { socketPath } from "./feature.ts";
import { type Frame, FrameShare, FrameStream } from "./frame-stream.ts";
import { setU16, copyBytes } from "../../base/dns/bytes.ts";
import { QUESTION_FIXED_BYTES } from "../../base/dns/record.ts";

/** Of an ID of a container, where its name is not known. */
const ID_CHARS = 12;
const NO_BYTES = new Uint8Array(0);

export function open({ settings, hostName, log, observe }: RunCore): Running {
  const taps = new Taps(hostName, log);
  observe({
    open: (containerId, client) => taps.open(containerId, client),
    close: () => undefined,
  });
  return {
    start: () => taps.configure(settings),
    configure: (next) => taps.configure(next),
    put: (fact) => taps.put(fact),
    remove: (containerId) => taps.remove(containerId),
    metrics: () => {
      const { written, dropped } = taps.counts;
      return [
        counter("dns11_dnstap_messages_total", "Messages for the reader of dnstap.", [
          sample(written, { result: "written" }),
          sample(dropped, { result: "dropped" }),
        ]),
        gauge("dns11_dnstap_connected", "Whether a reader of dnstap is connected.", [sample(Number(taps.isConnected))]),
      ];
    },
    close: async () => await taps.close(),
  };
}

/** What the query side has of a client. */
type TappedClient = Pick<Client, "tap" | "onClose"> & { notes: readonly OutcomeNote[] };

/** What is known of a container. */
interface Known {
  readonly name: string;
  readonly address: Uint8Array | undefined;
}

/** The taps of all open clients, as long as there is somewhere to write to. */
class Taps {
  readonly #identity: string;
  readonly #log: Log;
  readonly #known = new Map<string, Known>();
  readonly #clients = new Map<TappedClient, string>();
  readonly #tapOf = new Map<TappedClient, ClientTap>();
  readonly counts = { written: 0, dropped: 0 };
  #stream: FrameStream | undefined;
  #path: string | undefined;
  #hasNames = true;

  constructor(hostName: string, log: Log) {
    this.#identity = hostName;
    this.#log = log;
  }

  get isConnected(): boolean {
    return this.#stream?.isOpen === true;
  }

  configure(settings: Settings): void {
    const path = socketPath(settings);
    const hasNames = settings.queries.names === "full";
    if (path === this.#path && hasNames === this.#hasNames) return;
    this.#hasNames = hasNames;
    if (path !== this.#path) {
      void this.#endStream();
      this.#path = path;
      this.#stream = path === undefined ? undefined : this.#connect(path);
    }
    for (const client of this.#clients.keys()) this.#tap(client);
  }

  /** Returns what notes its answers. */
  open(containerId: string, client: TappedClient): OutcomeNote | undefined {
    this.#clients.set(client, containerId);
    client.onClose(() => {
      this.#clients.delete(client);
      this.#tapOf.delete(client);
    });
    return (client.tap = this.#newTap(client, containerId));
  }

  put(fact: ContainerFact): void {
    const { id, name } = fact;
    const address = outgoingAddress(fact);
    const before = this.#known.get(id);
    const bytes = address === undefined ? undefined : addressBytes(address);
    if (before?.name === name && Buffer.compare(before.address ?? NO_BYTES, bytes ?? NO_BYTES) === 0) return;
    this.#known.set(id, { name, address: bytes });
    if (this.#stream === undefined) return;
    for (const [client, containerId] of this.#clients) if (containerId === id) this.#tap(client);
  }

  remove(containerId: string): void {
    this.#known.delete(containerId);
  }

  async close(): Promise<void> {
    await this.#endStream();
  }

  #connect(path: string): FrameStream {
    const events = {
      onConnected: () => this.#log.info({ path }, "a reader of dnstap is connected"),
      onAway: (reason: string) => this.#log.warn({ path, reason }, "the reader of dnstap is away, trying again"),
    };
    return new FrameStream(path, events, this.counts);
  }

  async #endStream(): Promise<void> {
    const stream = this.#stream;
    if (stream === undefined) return;
    this.#stream = undefined;
    await stream.close();
  }

  /** Gives a client the tap that it is to have now, or none. */
  #tap(client: TappedClient): void {
    const containerId = this.#clients.get(client);
    if (containerId === undefined) return;
    const before = this.#tapOf.get(client);
    const others = client.notes.filter((each) => each !== before);
    const tap = this.#newTap(client, containerId);
    client.notes = tap === undefined ? others : [...others, tap];
    client.tap = tap;
  }

  #newTap(client: TappedClient, containerId: string): ClientTap | undefined {
    const stream = this.#stream;
    this.#tapOf.delete(client);
    if (stream === undefined) return undefined;
    const { name = containerId.slice(0, ID_CHARS), address } = this.#known.get(containerId) ?? {};
    const tap = new ClientTap(stream, new MessageWriter(this.#identity, name), address, this.#hasNames);
    this.#tapOf.set(client, tap);
    return tap;
  }
}

/** Writes the messages of one client. */
class ClientTap implements QueryTap, OutcomeNote, Frame {
  readonly #stream: FrameStream;
  readonly #writer: MessageWriter;
  readonly #address: Uint8Array | undefined;
  readonly #hasNames: boolean;
  readonly #share = new FrameShare();
  readonly #message: TappedMessage = {
    type: 0,
    isStream: false,
    isTls: false,
    queryAddress: undefined,
    responseAddress: undefined,
    responsePort: 0,
    queryMs: 0,
    responseMs: undefined,
    bytes: NO_BYTES,
    start: 0,
    end: 0,
  };
  /** When the last query came. */
  #askedMs = 0;

  constructor(stream: FrameStream, writer: MessageWriter, address: Uint8Array | undefined, hasNames: boolean) {
    this.#stream = stream;
    this.#writer = writer;
    this.#address = address;
    this.#hasNames = hasNames;
  }

  asked(block: Uint8Array, offset: number, length: number, isStream: boolean, isOwn: boolean): void {
    this.#askedMs = Date.now();
    if (isOwn || length < HEADER_BYTES || isReply(block, offset) || isProbe(block, offset, length)) return;
    this.#begin(TAPPED.clientQuery, isStream, this.#askedMs, undefined);
    this.#push(block, offset, offset + length);
  }

  /** The answer to the last query, or to one that was forwarded. */
  note({ stage, reply, at, length, isStream, arrivedMs }: Outcome): void {
    if (length === 0) return;
    const now = Date.now();
    const sinceMs = stage === STAGE.completed ? now - (performance.now() - arrivedMs) : this.#askedMs;
    this.#begin(TAPPED.clientResponse, isStream, sinceMs, now);
    this.#push(reply, at, at + length);
  }

  sent(server: Server, message: Uint8Array, isStream: boolean): void {
    this.#begin(TAPPED.forwarderQuery, isStream, Date.now(), undefined);
    this.#setServer(server);
    this.#push(message, 0, message.length);
  }

  replied(server: Server, message: Uint8Array, isStream: boolean, sentMs: number): void {
    const now = Date.now();
    this.#begin(TAPPED.forwarderResponse, isStream, now - (performance.now() - sentMs), now);
    this.#setServer(server);
    this.#push(message, 0, message.length);
  }

  get sizeMax(): number {
    return this.#writer.sizeMax(this.#message);
  }

  write(block: Buffer, at: number): number {
    return this.#writer.write(block, at, this.#message);
  }

  #begin(type: number, isStream: boolean, queryMs: number, responseMs: number | undefined): void {
    const message = this.#message;
    message.type = type;
    message.isStream = isStream;
    message.isTls = false;
    message.queryMs = queryMs;
    message.responseMs = responseMs;
    message.queryAddress = this.#address;
    message.responseAddress = undefined;
  }

  /** Who asks it is dns11, at an address that is of no interest. */
  #setServer({ address, port, tls }: Server): void {
    const message = this.#message;
    message.isTls = tls !== undefined;
    message.queryAddress = undefined;
    message.responseAddress = addressBytes(address);
    message.responsePort = port;
  }

  #push(bytes: Uint8Array, start: number, end: number): void {
    const message = this.#message;
    message.bytes = this.#hasNames ? bytes : withoutNames(bytes, start, end);
    message.start = this.#hasNames ? start : 0;
    message.end = this.#hasNames ? end : message.bytes.length;
    this.#stream.push(this, this.#share);
  }
}

/** With it dns11 checks that queries arrive. */
function isProbe(block: Uint8Array, offset: number, length: number): boolean {
  const start = offset + HEADER_BYTES;
  const end = start + PROBE_NAME_BYTES;
  return (
    end <= offset + length && nameEnd(block, start, end) === end && sentProbes.has(presentation(block, start, end))
  );
}

/** Of Dnstap. */
const IDENTITY = 1;
const VERSION = 2;
const EXTRA = 3;
const MESSAGE = 14;
const KIND = 15;
/** Of Message. */
const TYPE = 1;
const FAMILY = 2;
const PROTOCOL = 3;
const QUERY_ADDRESS = 4;
const RESPONSE_ADDRESS = 5;
const RESPONSE_PORT = 7;
const QUERY_SECONDS = 8;
const QUERY_NANOSECONDS = 9;
const QUERY_MESSAGE = 10;
const RESPONSE_SECONDS = 12;
const RESPONSE_NANOSECONDS = 13;
const RESPONSE_MESSAGE = 14;

const VARINT = 0;
const BYTES = 2;
const FIXED32 = 5;
const FIXED32_BYTES = 5;

const INET = 1;
const INET6 = 2;
const UDP = 1;
const TCP = 2;
const DOT = 3;

/**
 * The types of messages that dns11 has. They are written here, and not by a package for protocol buffers, because two messages with
 * some fifteen fields are written and none is read: each field is a tag, which has its number and type, and a number or bytes with
 * their length.
 */
export const TAPPED = { clientQuery: 5, clientResponse: 6, forwarderQuery: 7, forwarderResponse: 8 } as const;

/** More than all fields but the message and what the sender is called. */
const FIELDS_BYTES = 128;
const SECOND_MS = 1_000;
const NS_IN_MS = 1e6;

/** Reused for each message. Times are those of `Date.now`, with fractions. */
export interface TappedMessage {
  type: number;
  isStream: boolean;
  isTls: boolean;
  /** Undefined if it is not known. */
  queryAddress: Uint8Array | undefined;
  /** That of a server, with its port. */
  responseAddress: Uint8Array | undefined;
  responsePort: number;
  queryMs: number;
  /** Undefined for a query. */
  responseMs: number | undefined;
  /** The message is at `start`, up to `end`. */
  bytes: Uint8Array;
  start: number;
  end: number;
}

/** Who sees the messages, and which container they are about. */
export class MessageWriter {
  /** The fields of Dnstap beside the message. */
  readonly #envelope: Buffer;

  constructor(identity: string, extra: string) {
    const texts = [identity, "dns11", extra].map((text) => Buffer.from(text));
    const envelope = Buffer.alloc(texts.reduce((sum, each) => sum + bytesSize(each.length), 0) + 2);
    let at = 0;
    for (const [index, field] of [IDENTITY, VERSION, EXTRA].entries()) {
      const text = texts[index] as Buffer;
      at = writeBytes(envelope, at, field, text, 0, text.length);
    }
    writeNumber(envelope, at, KIND, 1);
    this.#envelope = envelope;
  }

  /** No message takes more than that. */
  sizeMax(message: TappedMessage): number {
    return this.#envelope.length + FIELDS_BYTES + message.end - message.start;
  }

  /** Writes a message at `at`, where there is room; returns the offset after it. */
  write(block: Uint8Array, at: number, message: TappedMessage): number {
    copyBytes(this.#envelope, 0, this.#envelope.length, block, at);
    const start = writeNumber(block, at + this.#envelope.length, MESSAGE, contentSize(message), BYTES);
    return writeContent(block, start, message);
  }
}

function contentSize(message: TappedMessage): number {
  const { queryAddress, responseAddress, responsePort, queryMs, responseMs, start, end } = message;
  let size = 6 + bytesSize(end - start) + 1 + varintSize(secondsOf(queryMs)) + FIXED32_BYTES;
  if (queryAddress !== undefined) size += bytesSize(queryAddress.length);
  if (responseAddress !== undefined) size += bytesSize(responseAddress.length) + 1 + varintSize(responsePort);
  if (responseMs !== undefined) size += 1 + varintSize(secondsOf(responseMs)) + FIXED32_BYTES;
  return size;
}

function writeContent(block: Uint8Array, start: number, message: TappedMessage): number {
  const { type, isStream, isTls, queryAddress, responseAddress, responsePort, queryMs, responseMs, bytes } = message;
  const isIPv6 = (responseAddress ?? queryAddress)?.length === 16;
  let at = writeNumber(block, start, TYPE, type);
  at = writeNumber(block, at, FAMILY, isIPv6 ? INET6 : INET);
  at = writeNumber(block, at, PROTOCOL, isTls ? DOT : isStream ? TCP : UDP);
  if (queryAddress !== undefined) at = writeBytes(block, at, QUERY_ADDRESS, queryAddress, 0, queryAddress.length);
  if (responseAddress !== undefined) {
    at = writeBytes(block, at, RESPONSE_ADDRESS, responseAddress, 0, responseAddress.length);
    at = writeNumber(block, at, RESPONSE_PORT, responsePort);
  }
  at = writeTime(block, at, QUERY_SECONDS, QUERY_NANOSECONDS, queryMs);
  if (responseMs === undefined) return writeBytes(block, at, QUERY_MESSAGE, bytes, message.start, message.end);
  at = writeTime(block, at, RESPONSE_SECONDS, RESPONSE_NANOSECONDS, responseMs);
  return writeBytes(block, at, RESPONSE_MESSAGE, bytes, message.start, message.end);
}

function secondsOf(ms: number): number {
  return Math.floor(ms / SECOND_MS);
}

function varintSize(value: number): number {
  let size = 1;
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) size++;
  return size;
}

function bytesSize(length: number): number {
  return 1 + varintSize(length) + length;
}

/** `wire`: another type for a number that is a length. */
function writeNumber(block: Uint8Array, at: number, field: number, value: number, wire = VARINT): number {
  block[at++] = (field << 3) | wire;
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) block[at++] = (rest % 0x80) | 0x80;
  block[at++] = rest;
  return at;
}

function writeBytes(
  block: Uint8Array,
  at: number,
  field: number,
  bytes: Uint8Array,
  start: number,
  end: number,
): number {
  const next = writeNumber(block, at, field, end - start, BYTES);
  copyBytes(bytes, start, end, block, next);
  return next + end - start;
}

function writeTime(block: Uint8Array, at: number, seconds: number, nanoseconds: number, ms: number): number {
  const whole = secondsOf(ms);
  let next = writeNumber(block, at, seconds, whole);
  block[next++] = (nanoseconds << 3) | FIXED32;
  let rest = Math.floor((ms - whole * SECOND_MS) * NS_IN_MS);
  for (let index = 0; index < 4; index++, rest = Math.floor(rest / 0x100)) block[next++] = rest % 0x100;
  return next;
}

/** What is left of a message whose names nobody may read: its header, and type and class of the question. The root is its name. */
const NAMELESS = new Uint8Array(HEADER_BYTES + 1 + QUESTION_FIXED_BYTES);

/** The message without names, addresses and texts. It is valid until the next call; its length is that of the returned part. */
export function withoutNames(bytes: Uint8Array, start: number, end: number): Uint8Array {
  NAMELESS.fill(0);
  NAMELESS.set(bytes.subarray(start, Math.min(end, start + QUESTIONS_AT)));
  const fixedAt = nameEnd(bytes, start + HEADER_BYTES, end);
  if (fixedAt === undefined || fixedAt + QUESTION_FIXED_BYTES > end) return NAMELESS.subarray(0, HEADER_BYTES);
  setU16(NAMELESS, QUESTIONS_AT, 1);
  NAMELESS.set(bytes.subarray(fixedAt, fixedAt + QUESTION_FIXED_BYTES), HEADER_BYTES + 1);
  return NAMELESS;
}

/** Where a name ends that is not compressed; undefined if it is none. */
function nameEnd(bytes: Uint8Array, start: number, end: number): number | undefined {
  for (let at = start; at < end;) {
    const size = bytes[at] as number;
    if (size === 0) return at + 1;
    if (size >= POINTER) return undefined;
    at += size + 1;
  }
  return undefined;
}
