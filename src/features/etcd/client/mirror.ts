import { backoffMs } from "../../../base/lib/retry.ts";
import { Fault } from "../../../base/lib/fault.ts";
import { guard } from "../../../base/lib/guard.ts";
import { sleep } from "../../../base/lib/async.ts";
import { inSlices } from "../../../base/lib/slices.ts";
import { ETCD_LIMITS } from "../limits.ts";
import { canceledFault, ETCD_TOKEN, ETCD_TOO_LARGE, isEtcdFault, noEtcdFault, reportedFault } from "./faults.ts";
import type { Gateway, Member, MessageStream } from "./gateway.ts";
import { endOf, list, type StoredKeys } from "./keys.ts";
import {
  encoded,
  listOf,
  numberOf,
  objectOf,
  readWatchMessage,
  revisionOf,
  streamError,
  textOf,
  type WatchMessage,
  type StoredKey,
} from "./messages.ts";

interface WatchParts {
  readonly gateway: Gateway;
  readonly prefix: string;
  readonly keys: StoredKeys;
  /** Called when the stream exists and its member hears the others: from here on what is known is current. */
  readonly onOpen: () => void;
  /** Called with every lease that a changed key has. */
  readonly onLease: (lease: string) => void;
  /** Called while the member goes on proving to be alive. */
  readonly onAlive: () => void;
}

/** `relist`: what comes next cannot be watched any more. */
type WatchEnd =
  | { readonly kind: "ended" | "relist"; readonly fault?: undefined }
  | { readonly kind: "failed"; readonly fault: Fault };

/**
 * One stream with the changes below a prefix from a revision on, checked for life: a member without a leader, or
 * behind a broken path, says nothing at all.
 */
class Watch {
  readonly #parts: WatchParts;
  /** Everything up to this revision is known. */
  revision: number;
  /** A member without a leader opens a stream, too. */
  #isCreated = false;
  #isProven = false;
  #isOver = false;

  constructor(parts: WatchParts, revision: number) {
    this.#parts = parts;
    this.revision = revision;
  }

  /** Follows the stream until it ends. */
  async run(signal: AbortSignal): Promise<WatchEnd> {
    const { gateway, prefix } = this.#parts;
    await gateway.authenticate(signal);
    const stream = gateway.stream("/v3/watch", {
      create_request: {
        key: encoded(prefix),
        range_end: encoded(endOf(prefix)),
        start_revision: String(this.revision + 1),
        progress_notify: true,
        fragment: true,
      },
    });
    const close = (): void => stream.close();
    signal.addEventListener("abort", close, { once: true });
    const checks = new AbortController();
    try {
      return await this.#follow(stream, checks.signal);
    } finally {
      this.#isOver = true;
      checks.abort();
      signal.removeEventListener("abort", close);
      stream.close();
    }
  }

  async #follow(stream: MessageStream, signal: AbortSignal): Promise<WatchEnd> {
    return await new Promise<WatchEnd>((resolve) => {
      const end = (how: WatchEnd): void => {
        if (how.kind === "failed" && isEtcdFault(how.fault, ETCD_TOKEN)) this.#parts.gateway.dropToken();
        resolve(how);
      };
      stream.onEnd = (fault) => end(fault === undefined ? { kind: "ended" } : { kind: "failed", fault });
      stream.onMessage = async (message) => {
        try {
          const how = await this.#take(message, stream.member.endpoint);
          if (how !== undefined) end(how);
        } catch (error) {
          guard.report(error, "elsewhere");
        }
      };
      void this.#check(stream, signal).then((how) => how && end(how));
    });
  }

  async #take(message: unknown, endpoint: string): Promise<WatchEnd | undefined> {
    const error = streamError(message);
    if (error !== undefined) return { kind: "failed", fault: reportedFault(endpoint, error.code, error.message) };
    const read = readWatchMessage(message);
    if (read === undefined) return undefined;
    if (read.compactRevision > 0) return { kind: "relist" };
    if (read.isCanceled) return { kind: "failed", fault: canceledFault(endpoint, read.cancelReason) };
    if (read.isCreated) {
      this.#isCreated = true;
      if (this.#isProven) this.#parts.onOpen();
    }
    // What one transaction has changed is one step, as far as etcd's default allows; a deletion may have any number.
    await inSlices(this.#applying(read.events), TRANSACTION_EVENTS);
    if (this.#isOver) return undefined;
    if (read.events.length > 0 && !read.isFragment) this.revision = Math.max(this.revision, read.revision);
    // A progress report: nothing up to here is still on its way.
    if (read.events.length === 0 && !read.isCreated) this.revision = Math.max(this.revision, read.revision);
    return undefined;
  }

  *#applying(events: WatchMessage["events"]): Generator<void> {
    const { keys, onLease } = this.#parts;
    for (const { isDelete, stored } of events) {
      // All of the message comes again.
      if (this.#isOver) return;
      if (isDelete) keys.remove(stored.key);
      else keys.put(stored);
      if (stored.lease !== undefined && !isDelete) onLease(stored.lease);
      yield;
    }
  }

  /** Checks at once, and then as long as the stream lasts. */
  async #check({ member }: MessageStream, signal: AbortSignal): Promise<WatchEnd | undefined> {
    const { gateway, prefix, onAlive } = this.#parts;
    for (let waitMs = 0; ; waitMs = ETCD_LIMITS.checkMs) {
      await sleep(waitMs, signal);
      if (signal.aborted) return undefined;
      try {
        const known = this.revision;
        const revision = await countKeys(gateway, member, prefix, signal);
        // The cluster was restored from a copy: the stream waits for a revision that has another meaning now.
        if (revision < known) return { kind: "relist" };
        if (this.#isProven) onAlive();
        else if (this.#isCreated) this.#parts.onOpen();
        this.#isProven = true;
      } catch (error) {
        return signal.aborted ? undefined : { kind: "failed", fault: error as Fault };
      }
    }
  }
}

/** etcd's default of --max-txn-ops. */
const TRANSACTION_EVENTS = 128;

/**
 * Asks a member for something that it can only answer together with the others. Returns the revision of its store, and throws
 * a Fault where there is none.
 */
async function countKeys(gateway: Gateway, member: Member, prefix: string, signal: AbortSignal): Promise<number> {
  const body = { key: encoded(prefix), count_only: true };
  const revision = revisionOf(await gateway.callOn(member, "/v3/kv/range", body, signal));
  if (revision === 0) throw noEtcdFault("has no revision");
  return revision;
}

interface MirrorParts {
  readonly gateway: Gateway;
  readonly prefix: string;
  readonly keys: StoredKeys;
  /** The keys are those of etcd; or not any more, and why. */
  readonly onState: (fault: Fault | undefined) => void;
  /** The totals to go on from. */
  readonly counts?: MirrorCounts | undefined;
}

export interface MirrorCounts {
  lists: number;
  reconnects: number;
}

export function noMirrorCounts(): MirrorCounts {
  return { lists: 0, reconnects: 0 };
}

/**
 * Keeps what is below a prefix of etcd in memory: one list, then a watch from its revision on. It starts again
 * where etcd does not have the changes any more, and lasts until it is stopped, however long etcd is away.
 *
 *   list -> watch -> (stream ended, member failed) -> watch from the last revision
 *                 -> (compacted, restored)         -> list
 */
export class Mirror {
  readonly #parts: MirrorParts;
  readonly #leases: LeaseTimes;
  readonly counts: MirrorCounts;
  /** What etcd warns of, such as NOSPACE. */
  alarms: readonly string[] = [];
  #revision: number | undefined;
  #watch: Watch | undefined;
  #failures = 0;

  constructor(parts: MirrorParts) {
    this.#parts = parts;
    this.counts = parts.counts ?? noMirrorCounts();
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
    if (isLast) await sleep(ETCD_LIMITS.retryFirstMs, signal);
  }

  async #backOff(signal: AbortSignal): Promise<void> {
    const { retryFirstMs: first, retryLastMs: last } = ETCD_LIMITS;
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
    if (this.#known.has(lease) || this.#waiting.size >= ETCD_LIMITS.leases) return;
    if (this.#known.size >= ETCD_LIMITS.leases) this.#known.delete(this.#known.values().next().value as string);
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
