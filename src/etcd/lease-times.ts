/**
 * LeaseTimes: how long leases were granted for, which bounds the TTL of the records that end with them. A record does
 * not say it, so etcd is asked once for each lease; a machine has one lease for all its records.
 */
import { LIMITS } from "../base/limits.ts";
import type { Gateway } from "./gateway.ts";
import { numberOf, objectOf } from "./messages.ts";

export class LeaseTimes {
  readonly #gateway: Gateway;
  readonly #onTime: (lease: string, ttlSeconds: number) => void;
  readonly #known = new Set<string>();
  readonly #waiting = new Set<string>();
  #isAsking = false;

  constructor(gateway: Gateway, onTime: (lease: string, ttlSeconds: number) => void) {
    this.#gateway = gateway;
    this.#onTime = onTime;
  }

  /** A record with this lease was seen. */
  note(lease: string, signal: AbortSignal): void {
    if (this.#known.has(lease) || this.#waiting.size >= LIMITS.etcdLeases) return;
    if (this.#known.size >= LIMITS.etcdLeases) this.#known.delete(this.#known.values().next().value as string);
    this.#known.add(lease);
    this.#waiting.add(lease);
    if (!this.#isAsking) void this.#ask(signal);
  }

  /** One after the other: nothing waits for it. */
  async #ask(signal: AbortSignal): Promise<void> {
    this.#isAsking = true;
    try {
      for (const lease of this.#waiting) {
        if (signal.aborted) return;
        const reply = await this.#gateway.call("/v3/lease/timetolive", { ID: lease }, signal);
        this.#waiting.delete(lease);
        const granted = numberOf(objectOf(reply)["grantedTTL"]);
        if (granted > 0) this.#onTime(lease, granted);
      }
    } catch {
      // Whoever watches notices that etcd is away; the next change of a record tries again.
      for (const lease of this.#waiting) this.#known.delete(lease);
      this.#waiting.clear();
    } finally {
      this.#isAsking = false;
    }
  }
}
