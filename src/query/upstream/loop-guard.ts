/**
 * LoopGuard: notices servers that lead back to us, as when the host's resolver is a container whose own resolver we are.
 * What makes it look is the same question coming in again while it is being asked. It then asks that server for two names
 * that nobody else asks for: one below the name in question, so that it takes the same way, and one of a zone that does
 * not exist, which takes the way of all names. What comes back to us is a loop, by way of the container that asked it.
 *
 * Only that container's queries are part of the loop, so only they are kept from the server; everybody else goes on asking
 * it. And whoever runs a name's own servers can read a probe below that name and have a container ask it: so what came
 * back below a name says something about that name alone.
 */
import { randomBytes } from "node:crypto";

import { NAME_BYTES_MAX, presentation } from "../../base/dns/name.ts";
import { queryOf } from "../../base/dns/query.ts";
import { TYPE } from "../../base/dns/record-type.ts";
import { LIMITS } from "../../base/limits.ts";
import type { Client } from "../client/client.ts";
import type { Nameserver } from "./nameserver.ts";
import type { Exchange } from "./udp-socket.ts";

/** A server that leads back to a container, for names that end so; "" for all. */
export interface Loop {
  readonly nameserver: Nameserver;
  readonly suffix: string;
  readonly untilMs: number;
}

interface SentProbe {
  readonly nameserver: Nameserver;
  readonly suffix: string;
}

type OnLoop = (client: Client, loop: Loop) => void;

const NONCE_BYTES = 8;
const MARK = "dns11-loop";
/** How long a probe may be on its way. */
const PROBE_MS = 5_000;
const PROBES_MAX = 256;

export class LoopGuard {
  readonly #now: () => number;
  readonly #onLoop: OnLoop;
  readonly #sent = new Map<string, SentProbe>();
  readonly #lookedAtMs = new WeakMap<Nameserver, number>();
  readonly #loops = new WeakMap<Client, readonly Loop[]>();
  /** Until then there may be a loop to look for. */
  #loopsUntilMs = -Infinity;

  constructor(now: () => number, onLoop: OnLoop) {
    this.#now = now;
    this.#onLoop = onLoop;
  }

  /** Whether there is any probe to look out for. */
  get hasProbes(): boolean {
    return this.#sent.size > 0;
  }

  /** A question for `name` may have come back from one of these servers: has them asked for what only we know of. */
  suspect(client: Client, nameservers: readonly Nameserver[], name: string): void {
    for (const nameserver of nameservers) {
      try {
        for (const message of this.#probes(nameserver, name)) {
          const socket = nameserver.sockets.draw(() => client.dial(nameserver.server, "udp"));
          socket.ask(new LoopProbe(message, client.number));
        }
      } catch {
        // A server that cannot be reached leads nowhere.
      }
    }
  }

  /** Probes for this server, about `name` (a name without its end) and about all; none where none are due. */
  #probes(nameserver: Nameserver, name: string): Buffer[] {
    const now = this.#now();
    const isDue = now - (this.#lookedAtMs.get(nameserver) ?? -Infinity) >= LIMITS.loopProbeEveryMs;
    if (!isDue || this.#sent.size + 2 > PROBES_MAX) return [];
    this.#lookedAtMs.set(nameserver, now);
    return [...new Set([name, ""])].flatMap((suffix) => this.#probe(nameserver, suffix) ?? []);
  }

  /** Whether the name of a query that came in, which begins at `start`, is one of our probes. */
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

  /** Of these servers, those that lead back to the container when it asks for `name`. */
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

/** A probe is looked out for where queries come in; its reply says nothing. */
class LoopProbe implements Exchange {
  readonly message: Buffer;
  readonly questionEnd: number;
  readonly clientNumber: number;

  constructor(message: Buffer, by: number) {
    this.message = message;
    this.questionEnd = message.length;
    this.clientNumber = by;
  }

  onReply(): void {}

  onUnreachable(): void {}

  onForgery(): void {}
}

const NO_NAMESERVERS: readonly Nameserver[] = [];

/** Names as wire labels, without their end. */
export function isBelow(name: string, suffix: string): boolean {
  let at = 0;
  while (name.length - at > suffix.length) at += name.charCodeAt(at) + 1;
  return name.length - at === suffix.length && name.endsWith(suffix);
}

function label(text: string): Buffer {
  return Buffer.from(String.fromCharCode(text.length) + text, "latin1");
}
