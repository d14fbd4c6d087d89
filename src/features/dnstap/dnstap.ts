import { HEADER_BYTES, isReply } from "../../base/dns/header.ts";
import { presentation } from "../../base/dns/name.ts";
import type { Log } from "../../base/log/log.ts";
import { addressBytes } from "../../base/model/address.ts";
import { PROBE_NAME_BYTES, sentProbes } from "../../base/model/probe-message.ts";
import type { Server } from "../../base/model/view.ts";
import type { Settings } from "../../config/settings.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import { outgoingAddress } from "../../container/facts/outgoing-address.ts";
import { counter, gauge, sample } from "../../metrics/family.ts";
import type { Client, OutcomeNote } from "../../query/client/client.ts";
import { type Outcome, STAGE } from "../../query/record/outcome.ts";
import type { QueryTap } from "../../query/tap.ts";
import type { RunCore, Running } from "../contract.ts";
import { socketPath } from "./feature.ts";
import { type Frame, FrameShare, FrameStream } from "./frame-stream.ts";
import { MessageWriter, TAPPED, type TappedMessage, nameEnd, withoutNames } from "./message.ts";

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
