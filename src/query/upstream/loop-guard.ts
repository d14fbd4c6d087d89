/**
 * LoopGuard: detects forwarding loops, such as a host resolver that runs in a container which uses dns11. A second
 * identical question while the first is in flight triggers a check. The check sends the server two probes with names
 * that only we know: one below the name in question, which takes the same route, and one in a zone that does not exist,
 * which takes the default route. A probe that comes back proves a loop through the container that sent it.
 *
 * Only that container's queries are part of the loop, so only they stop using the server. And the authoritative servers
 * of a name see the probe below that name and can make a container query it, so a probe that comes back counts only for
 * names below its own.
 */
import { randomBytes } from "node:crypto";
import { NAME_BYTES_MAX, presentation, FOLD, LABEL_BYTES_MAX } from "../../base/dns/name.ts";
import { queryOf } from "../../base/dns/query.ts";
import { TYPE } from "../../base/dns/record-type.ts";
import { LIMITS } from "../../base/limits.ts";
import type { Client } from "../client/client.ts";
import type { Nameserver } from "./nameserver.ts";
import type { StreamPool } from "./stream-pool.ts";
import type { Exchange } from "./udp-socket.ts";
import { HEADER_BYTES } from "../../base/dns/header.ts";
import { HASH_BASIS, hashByte } from "../../base/model/label-table.ts";

/** A server that forwards a container's queries back to us, for names with this suffix; "" for all names. */
export interface Loop {
  readonly nameserver: Nameserver;
  readonly suffix: string;
  readonly untilMs: number;
}

interface SentProbe {
  readonly nameserver: Nameserver;
  readonly suffix: string;
}

/** A container's connections to a server that is only queried over TCP or TLS. */
type StreamsTo = (client: Client, nameserver: Nameserver) => Pick<StreamPool, "send">;

type OnLoop = (client: Client, loop: Loop) => void;

const NONCE_BYTES = 8;
const MARK = "dns11-loop";
/** Lifetime of a probe. */
const PROBE_MS = 5_000;
const PROBES_MAX = 256;

export class LoopGuard {
  readonly #now: () => number;
  readonly #onLoop: OnLoop;
  readonly #streamsTo: StreamsTo;
  readonly #sent = new Map<string, SentProbe>();
  readonly #checkedAtMs = new WeakMap<Nameserver, number>();
  readonly #loops = new WeakMap<Client, readonly Loop[]>();
  /** Until then a loop may be active. */
  #loopsUntilMs = -Infinity;

  constructor(now: () => number, onLoop: OnLoop, streamsTo: StreamsTo) {
    this.#now = now;
    this.#onLoop = onLoop;
    this.#streamsTo = streamsTo;
  }

  /** Whether any probe is outstanding. */
  get hasProbes(): boolean {
    return this.#sent.size > 0;
  }

  /** A query for `name` may have come back from one of these servers: sends them probes. */
  suspect(client: Client, nameservers: readonly Nameserver[], name: string): void {
    for (const nameserver of nameservers) {
      try {
        const now = this.#now();
        for (const message of this.#probes(nameserver, name, now)) {
          if (nameserver.tls !== undefined) {
            this.#streamsTo(client, nameserver).send(new LoopProbe(message, client.number));
            continue;
          }
          const socket = nameserver.sockets.draw(now, () => client.dial(nameserver.server, "udp"));
          socket.send(new LoopProbe(message, client.number), now);
        }
      } catch {
        // An unreachable server is no loop.
      }
    }
  }

  /**
   * Probes for this server, one below `name` (without the root label) and one below the root; none if the last check
   * was recent.
   */
  #probes(nameserver: Nameserver, name: string, now: number): Buffer[] {
    const isDue = now - (this.#checkedAtMs.get(nameserver) ?? -Infinity) >= LIMITS.loopProbeEveryMs;
    if (!isDue || this.#sent.size + 2 > PROBES_MAX) return [];
    this.#checkedAtMs.set(nameserver, now);
    return [...new Set([name, ""])].flatMap((suffix) => this.#probe(nameserver, suffix) ?? []);
  }

  /** Records a probe that came back; returns whether the query, whose name begins at `start`, is one. */
  recordProbe(client: Client, block: Uint8Array, start: number, nameEnd: number): boolean {
    const [nonce = "", mark] = presentation(block, start, nameEnd).toLowerCase().split(".", 2);
    const probe = mark === MARK ? this.#sent.get(nonce) : undefined;
    if (probe === undefined) return false;
    this.#sent.delete(nonce);
    const now = this.#now();
    const loop = { ...probe, untilMs: now + LIMITS.loopMs };
    this.#loopsUntilMs = loop.untilMs;
    this.#loops.set(client, [...this.#loopsOf(client, now), loop].slice(-LIMITS.loopsEach));
    probe.nameserver.markLooping(now);
    this.#onLoop(client, loop);
    return true;
  }

  /** The servers of these that forward the container's queries for `name` back to us. */
  loopingServers(client: Client, nameservers: readonly Nameserver[], name: string): readonly Nameserver[] {
    const now = this.#now();
    if (now >= this.#loopsUntilMs) return NO_NAMESERVERS;
    const loops = this.#loopsOf(client, now).filter(({ suffix }) => isBelow(name, suffix));
    return nameservers.filter((each) => loops.some(({ nameserver }) => nameserver === each));
  }

  #loopsOf(client: Client, now: number): readonly Loop[] {
    return (this.#loops.get(client) ?? []).filter(({ untilMs }) => now < untilMs);
  }

  #probe(nameserver: Nameserver, suffix: string): Buffer | undefined {
    const nonce = randomBytes(NONCE_BYTES).toString("hex");
    const labels = Buffer.concat([label(nonce), label(MARK), Buffer.from(suffix, "latin1")]);
    if (labels.length > NAME_BYTES_MAX) return undefined;
    this.#sent.set(nonce, { nameserver, suffix });
    setTimeout(() => this.#sent.delete(nonce), PROBE_MS).unref();
    return queryOf({ labels, type: TYPE.TXT });
  }
}

/** A probe is detected when it arrives as a query; its reply is ignored. */
class LoopProbe implements Exchange {
  readonly message: Buffer;
  readonly questionEnd: number;
  readonly clientNumber: number;

  constructor(message: Buffer, clientNumber: number) {
    this.message = message;
    this.questionEnd = message.length;
    this.clientNumber = clientNumber;
  }

  onReply(): void {}

  onUnreachable(): void {}

  onForgery(): void {}
}

const NO_NAMESERVERS: readonly Nameserver[] = [];

/** Names are wire labels without the root label. */
export function isBelow(name: string, suffix: string): boolean {
  let at = 0;
  while (name.length - at > suffix.length) at += name.charCodeAt(at) + 1;
  return name.length - at === suffix.length && name.endsWith(suffix);
}

function label(text: string): Buffer {
  return Buffer.from(String.fromCharCode(text.length) + text, "latin1");
}

/** Names with fewer than two labels are all in the root zone. */
const ROOT = 0;

/**
 * An estimate of the zone that a queried name is in, as a number: a hash of its last two labels. Names that share them
 * may have the same authoritative servers, so their failures say nothing about the server that was asked.
 * `message` is a query with one question, its name not compressed; or other bytes, with the labels of a name at `start`.
 */
export function zoneOf(message: Uint8Array, start: number = HEADER_BYTES): number {
  let at = start;
  let last = 0;
  let before = 0;
  for (;;) {
    const length = message[at] ?? 0;
    if (length === 0 || length > LABEL_BYTES_MAX) break;
    before = last;
    last = at;
    at += length + 1;
  }
  if (before === 0) return ROOT;
  let hash = HASH_BASIS;
  for (let i = before; i < at; i++) hash = hashByte(hash, FOLD[message[i] ?? 0] as number);
  return hash >>> 0;
}
