/**
 * OwnQueries: queries that dns11 itself is about to send from inside a container's namespace: lookups and the doctor's tests.
 * They are announced by source port, and count nowhere as queries of the container. A port is announced by dns11 or over the
 * control socket, for one query and a few seconds; a container cannot announce any, and so cannot hide its queries.
 */
import { LIMITS } from "../../base/limits.ts";

/** Distinguishes the ports of the two transports. */
const STREAM = 0x10000;

export class OwnQueries {
  /** When each announced port is forgotten. */
  readonly #untilMs = new Map<number, number>();
  /** Those whose queries no rule judges. */
  readonly #exempt = new Set<number>();
  /** Whether no rule judges the query that was taken last. */
  isExempt = false;
  readonly #now: () => number;
  readonly #onUdp: (ports: readonly number[]) => void;

  /** `onUdp` is called when the ports that are announced for UDP have changed. */
  constructor(
    now: () => number = () => performance.now(),
    onUdp: (ports: readonly number[]) => void = () => undefined,
  ) {
    this.#now = now;
    this.#onUdp = onUdp;
  }

  /** The ports that are announced for UDP. */
  get udpPorts(): readonly number[] {
    return [...this.#untilMs.keys()].filter((key) => key < STREAM);
  }

  /** Whether any is announced, which is rare. */
  get areExpected(): boolean {
    return this.#untilMs.size > 0;
  }

  /** `isExempt`: it is about dns11, not about what the container gets, so no rule of a test judges it. */
  announce(isStream: boolean, port: number, isExempt = false): void {
    const now = this.#now();
    for (const [key, untilMs] of this.#untilMs) if (untilMs <= now) this.#forget(key);
    if (this.#untilMs.size < LIMITS.ownQueries) {
      const key = keyOf(isStream, port);
      this.#untilMs.set(key, now + LIMITS.ownQueryMs);
      if (isExempt) this.#exempt.add(key);
    }
    if (!isStream) this.#onUdp(this.udpPorts);
  }

  /** Whether a query from this port is an announced one; it is announced no more. */
  take(isStream: boolean, port: number): boolean {
    const key = keyOf(isStream, port);
    const untilMs = this.#untilMs.get(key);
    if (untilMs === undefined) return false;
    this.isExempt = this.#exempt.has(key);
    this.#forget(key);
    if (!isStream) this.#onUdp(this.udpPorts);
    return this.#now() < untilMs;
  }

  #forget(key: number): void {
    this.#untilMs.delete(key);
    this.#exempt.delete(key);
  }
}

function keyOf(isStream: boolean, port: number): number {
  return isStream ? STREAM + port : port;
}
