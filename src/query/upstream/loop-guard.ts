/**
 * LoopGuard: notices servers that lead back to us, as when the host's resolver is a container whose own resolver we are.
 * What makes it look is the same question coming in again while it is being asked. It then asks that server for a name
 * nobody else asks for, below the one in question, so that it takes the same way; if that arrives here, it is a loop.
 */
import { randomBytes } from "node:crypto";

import { LIMITS } from "../../config/limits.ts";
import { NAME_BYTES_MAX, presentation } from "../../model/wire-name.ts";
import type { Nameserver } from "./nameserver.ts";

const TYPE_TXT = 16;
const CLASS_IN = 1;
const RD = 0x01;
const NONCE_BYTES = 8;
const MARK = "dns11-loop";
/** How long a probe may be on its way. */
const PROBE_MS = 5_000;
const PROBES_MAX = 256;

export class LoopGuard {
  readonly #now: () => number;
  readonly #onLoop: (nameserver: Nameserver) => void;
  readonly #probes = new Map<string, Nameserver>();
  readonly #lookedAtMs = new WeakMap<Nameserver, number>();

  constructor(now: () => number, onLoop: (nameserver: Nameserver) => void) {
    this.#now = now;
    this.#onLoop = onLoop;
  }

  /** Whether there is any probe to look out for. */
  get isExpecting(): boolean {
    return this.#probes.size > 0;
  }

  /** A probe for this server, below the name of `question` (a name without its end); undefined where none is due. */
  probe(nameserver: Nameserver, name: string): Buffer | undefined {
    const now = this.#now();
    const isDue = now - (this.#lookedAtMs.get(nameserver) ?? -Infinity) >= LIMITS.loopProbeEveryMs;
    const nonce = randomBytes(NONCE_BYTES).toString("hex");
    const labels = Buffer.concat([label(nonce), label(MARK), Buffer.from(name, "latin1")]);
    if (!isDue || labels.length > NAME_BYTES_MAX || this.#probes.size >= PROBES_MAX) return undefined;
    this.#lookedAtMs.set(nameserver, now);
    this.#probes.set(nonce, nameserver);
    setTimeout(() => this.#probes.delete(nonce), PROBE_MS).unref();
    const header = Buffer.from([0, 0, RD, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    return Buffer.concat([header, labels, Buffer.of(0, 0, TYPE_TXT, 0, CLASS_IN)]);
  }

  /** Whether the name of a query that came in, which begins at `start`, is one of our probes. */
  sees(block: Uint8Array, start: number, nameEnd: number): boolean {
    const [nonce = "", mark] = presentation(block, start, nameEnd).toLowerCase().split(".", 2);
    const nameserver = mark === MARK ? this.#probes.get(nonce) : undefined;
    if (nameserver === undefined) return false;
    this.#probes.delete(nonce);
    nameserver.leadsBack(this.#now());
    this.#onLoop(nameserver);
    return true;
  }
}

function label(text: string): Buffer {
  return Buffer.from(String.fromCharCode(text.length) + text, "latin1");
}
