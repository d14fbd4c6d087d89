/**
 * Mirror: keeps what is below a prefix of etcd in memory: one list, then a watch from its revision on. It starts again
 * where etcd does not have the changes any more, and lasts until it is stopped, however long etcd is away.
 *
 *   list -> watch -> (stream ended, member failed) -> watch from the last revision
 *                 -> (compacted, restored)         -> list
 */
import { backoffMs } from "../base/lib/backoff.ts";
import { Fault } from "../base/lib/fault.ts";
import { guard } from "../base/lib/guard.ts";
import { sleep } from "../base/lib/sleep.ts";
import { LIMITS } from "../base/limits.ts";
import type { StoredKey, StoredKeys } from "../base/model/stored-key.ts";
import { ETCD_TOO_LARGE, isEtcdFault } from "./etcd-fault.ts";
import type { Gateway } from "./gateway.ts";
import { list } from "./listing.ts";
import { listOf, objectOf, textOf, numberOf } from "./messages.ts";
import { Watch, countKeys } from "./watch.ts";

export interface MirrorParts {
  readonly gateway: Gateway;
  readonly prefix: string;
  readonly keys: StoredKeys;
  /** The keys are those of etcd; or not any more, and why. */
  readonly onState: (fault: Fault | undefined) => void;
}

export interface MirrorCounts {
  lists: number;
  reconnects: number;
}

export class Mirror {
  readonly #parts: MirrorParts;
  readonly #leases: LeaseTimes;
  readonly counts: MirrorCounts = { lists: 0, reconnects: 0 };
  /** What etcd warns of, such as NOSPACE. */
  alarms: readonly string[] = [];
  #revision: number | undefined;
  #watch: Watch | undefined;
  #failures = 0;

  constructor(parts: MirrorParts) {
    this.#parts = parts;
    this.#leases = new LeaseTimes(parts.gateway, (lease, ttlSeconds) => parts.keys.setLease(lease, ttlSeconds));
  }

  /** Everything up to here is known. */
  get revision(): number | undefined {
    return this.#watch?.revision ?? this.#revision;
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#turn(signal);
      } catch (error) {
        if (signal.aborted) return;
        // What is wrong may be this member's own, such as replies that are all too long.
        this.#parts.gateway.leave(this.#parts.gateway.current);
        if (!(error instanceof Fault)) guard.report(error, "elsewhere");
        this.#parts.onState(error instanceof Fault ? error : new Fault("INTERNAL", String(error)));
        this.#failures++;
        await this.#backOff(signal);
      }
    }
  }

  /** One list, if one is needed, and one watch. Throws a Fault where etcd is away. */
  async #turn(signal: AbortSignal): Promise<void> {
    const { gateway, prefix, keys } = this.#parts;
    if (this.#revision === undefined) {
      this.#revision = await list(gateway, prefix, this.#noting(keys, signal), signal);
      this.counts.lists++;
    }
    const watch = new Watch(
      {
        gateway,
        prefix,
        keys,
        onOpen: () => this.#parts.onState(undefined),
        onLease: (lease) => this.#leases.note(lease, signal),
        onAlive: () => {
          this.#failures = 0;
          void this.#readAlarms(signal);
          void gateway.recheck(async (member) => await countKeys(gateway, member, prefix, signal));
        },
      },
      this.#revision,
    );
    this.#watch = watch;
    const end = await watch.run(signal);
    this.#watch = undefined;
    // One message of the watch may be longer than any page of a list, and would come again.
    const isListed = end.kind === "relist" || isEtcdFault(end.fault, ETCD_TOO_LARGE);
    this.#revision = isListed ? undefined : watch.revision;
    if (signal.aborted) return;
    // Once at once. A member that lists and then never watches is not asked in a loop.
    if (end.kind === "relist") {
      if (this.#failures++ > 0) await this.#backOff(signal);
      return;
    }
    this.counts.reconnects++;
    const { current, members } = gateway;
    if (end.kind === "failed") current.fault = end.fault;
    gateway.leave(current);
    // The others are tried before what is known counts as old. A member that is restarted ends its streams.
    const isLast = this.#failures++ >= members.length - 1;
    if (end.kind === "failed" && isLast) throw end.fault;
    if (isLast) await sleep(LIMITS.etcdRetryFirstMs, signal);
  }

  async #backOff(signal: AbortSignal): Promise<void> {
    const { etcdRetryFirstMs: first, etcdRetryLastMs: last } = LIMITS;
    await sleep(backoffMs(this.#failures - 1, first, last, Math.random()), signal);
  }

  #noting(keys: StoredKeys, signal: AbortSignal): StoredKeys {
    return {
      after: (key) => keys.after(key),
      begin: () => keys.begin(),
      commit: () => keys.commit(),
      put: (stored: StoredKey) => {
        keys.put(stored);
        if (stored.lease !== undefined) this.#leases.note(stored.lease, signal);
      },
      remove: (key) => keys.remove(key),
      setLease: (lease, ttlSeconds) => keys.setLease(lease, ttlSeconds),
    };
  }

  async #readAlarms(signal: AbortSignal): Promise<void> {
    try {
      const reply = await this.#parts.gateway.call("/v3/maintenance/alarm", { action: "GET" }, signal);
      const names = listOf(objectOf(reply)["alarms"]).map((each) =>
        textOf(objectOf(each)["alarm"]).slice(0, NAME_CHARS),
      );
      this.alarms = [...new Set(names)].slice(0, ALARMS_MAX);
    } catch {
      // The user may not have permission to read them.
    }
  }
}

const ALARMS_MAX = 4;
const NAME_CHARS = 40;

/**
 * How long leases were granted for, which bounds the TTL of the records that end with them. A record does
 * not say it, so etcd is asked once for each lease; a machine has one lease for all its records.
 */
class LeaseTimes {
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
