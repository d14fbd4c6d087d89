import { backoffMs } from "../../../base/lib/retry.ts";
import { Fault } from "../../../base/lib/fault.ts";
import { guard } from "../../../base/lib/guard.ts";
import { sleep } from "../../../base/lib/async.ts";
import { ETCD_LIMITS } from "../limits.ts";
import {
  ETCD_LEASE_LOST,
  foreignKeysFault,
  isEtcdFault,
  machineTakenFault,
  notWrittenFault,
  reportedFault,
} from "./faults.ts";
import type { Calls, Gateway } from "./gateway.ts";
import { list } from "./keys.ts";
import {
  encoded,
  listOf,
  numberOf,
  objectOf,
  readPage,
  revisionOf,
  type StoredKey,
  streamError,
  textOf,
} from "./messages.ts";
import { OwnKeys } from "./own-keys.ts";

/** What this machine wants to have in the store, below its own part of it. */
export interface WantedKeys {
  /** Values by key. */
  readonly wanted: ReadonlyMap<string, string>;
  /** Everything that is to be there is known, so that what is not wanted may go. */
  readonly isComplete: boolean;
  /** The addresses of this machine, as text. */
  readonly addresses: readonly string[];
  /** Called with each key whose value may have changed; undefined where all may have. */
  onChange: (key: string | undefined) => void;
  /** The address from which the store is reached: that of this machine where the settings have none. */
  setConnectedAddress(address: string | undefined): void;
}

interface Owner {
  /** Which engine's dns11. */
  readonly instance: string;
  /** Which run of it. */
  readonly run: string;
}

/** The key as it is in etcd. */
interface StoredOwner extends Owner {
  readonly lease: string | undefined;
  readonly revision: number;
}

interface PublisherParts {
  readonly gateway: Pick<Gateway, "call" | "localAddress">;
  /** The first part of all keys of this machine, with a slash at its end. */
  readonly root: string;
  /** The key of the owner below it. */
  readonly ownerKey: string;
  readonly machine: string;
  /** Which dns11 this is, on this machine, and which run of it. */
  readonly instance: string;
  readonly run: string;
  readonly leaseSeconds: number;
  readonly keys: WantedKeys;
  /** What is wrong, or nothing any more. */
  readonly onState: (fault: Fault | undefined) => void;
  /** The totals to go on from. */
  readonly counts?: PublisherCounts | undefined;
  readonly now?: (() => number) | undefined;
  readonly wait?: ((ms: number, signal: AbortSignal) => Promise<void>) | undefined;
}

export interface PublisherCounts {
  transactions: number;
  writes: number;
  failures: number;
  /** How often everything had to be published again. */
  losses: number;
}

export function noPublisherCounts(): PublisherCounts {
  return { transactions: 0, writes: 0, failures: 0, losses: 0 };
}

interface Claim {
  readonly lease: string;
  /** The own lease, and that of the run before. */
  readonly leases: ReadonlySet<string>;
  readonly revision: number;
}

type Part = "lease" | "write";

const MS = 1_000;

/**
 * Writes what is wanted below the key of this machine, under a lease that it renews, for as long as it is not
 * stopped. Times are those of a clock that no step changes.
 *
 *   claim -> write differences, renew the lease -> (lease or owner lost) -> claim, and everything again
 *                                               -> (write refused)       -> again, with the lease renewed meanwhile
 *
 * The next run of the same machine finds the lease in the owner's key, and goes on with it: nothing is written twice.
 */
export class Publisher {
  readonly counts: PublisherCounts;
  readonly #parts: PublisherParts;
  readonly #own: OwnKeys;
  readonly #now: () => number;
  readonly #wait: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly #dirty = new Set<string>();
  #claim: Claim | undefined;
  /** It was the owner once: what another run writes then has replaced it. */
  #hasClaimed = false;
  #wake: () => void = () => {};
  readonly #faults: Record<Part, Fault | undefined> = { lease: undefined, write: undefined };
  /** The code of a fault; undefined where there was none, and false before all was written once. */
  #reported: string | undefined | false = false;
  #renewedAt = -Infinity;
  #listedAt = -Infinity;
  #isChangedByOthers = false;

  constructor(parts: PublisherParts) {
    this.#parts = parts;
    this.counts = parts.counts ?? noPublisherCounts();
    this.#own = new OwnKeys(parts.root, this.#ownerKey);
    this.#now = parts.now ?? (() => performance.now());
    this.#wait = parts.wait ?? sleep;
    parts.keys.onChange = (key) => this.#change(key);
  }

  get fault(): Fault | undefined {
    return this.#faults.lease ?? this.#faults.write;
  }

  /** It is the owner, and etcd has confirmed the lease in time. */
  get isHeld(): boolean {
    return this.#claim !== undefined && this.#now() - this.#renewedAt < this.#parts.leaseSeconds * MS;
  }

  get lease(): string | undefined {
    return this.#claim?.lease;
  }

  /** How many keys etcd has, how many are still to be written, and how many of others are among them. */
  get sizes(): { readonly written: number; readonly pending: number; readonly foreign: number } {
    const foreign = this.#own.foreign(this.#claim?.leases ?? new Set(), this.#parts.keys.wanted);
    return { written: this.#own.size - foreign, pending: this.#dirty.size, foreign };
  }

  /** Whether etcd has this key as it is wanted, for as long as the lease is held. */
  has(key: string): boolean {
    const value = this.#parts.keys.wanted.get(key);
    return this.isHeld && value !== undefined && this.#own.has(key, value, this.lease);
  }

  /** etcd has this value now; undefined: it is deleted. */
  noteStored(key: string, value: string | undefined): void {
    const name = key.slice(this.#parts.root.length);
    if (this.#claim === undefined || key === this.#ownerKey) return;
    if (this.#own.expects(name, value, this.#parts.keys.wanted.get(name), this.#claim.leases)) return;
    this.#isChangedByOthers = true;
    this.#wake();
  }

  /** Until it is stopped: what is written stays as long as the lease. */
  async run(signal: AbortSignal): Promise<void> {
    for (let failures = 0; !signal.aborted; failures++) {
      try {
        await this.#take(signal);
        if (signal.aborted) return;
        failures = 0;
        this.#faults.lease = undefined;
        await this.#hold(signal);
      } catch (error) {
        if (signal.aborted) return;
        this.#claim = isEtcdFault(error, ETCD_LEASE_LOST) ? undefined : this.#claim;
        if (isEtcdFault(error, ETCD_LEASE_LOST)) this.counts.losses++;
        this.#note("lease", error);
        await this.#wait(retryMs(failures), signal);
      }
    }
  }

  /** Ends what is published, if it is still ours. Call it after `run` has ended. */
  async withdraw(signal: AbortSignal): Promise<void> {
    if (this.#claim === undefined) return;
    const owner = await readOwner(this.#parts.gateway, this.#ownerKey, signal);
    if (owner?.run === this.#parts.run) await revokeLease(this.#parts.gateway, this.#claim.lease, signal);
  }

  get #ownerKey(): string {
    return this.#parts.root + this.#parts.ownerKey;
  }

  #change(key: string | undefined): void {
    const { wanted } = this.#parts.keys;
    for (const each of key === undefined ? [...wanted.keys(), ...this.#own.keys] : [key]) this.#dirty.add(each);
    this.#wake();
  }

  /** Becomes the owner. Throws a Fault where that is not possible. */
  async #take(signal: AbortSignal): Promise<void> {
    const { gateway, instance, run, keys } = this.#parts;
    const before = await readOwner(gateway, this.#ownerKey, signal);
    keys.setConnectedAddress(gateway.localAddress);
    const isOther = before !== undefined && before.run !== run;
    if (isOther && (before.instance !== instance || this.#hasClaimed)) {
      this.#claim = undefined;
      throw machineTakenFault(this.#parts.machine);
    }
    const lease = await this.#leaseAfter(before, signal);
    const revision = await this.#putOwner(before, lease, signal);
    this.#claim = { lease, leases: new Set([lease, before?.lease ?? lease]), revision };
    this.#hasClaimed = true;
    await this.#list(signal);
  }

  /** That of the run before, if it still exists and is granted for as long as is wanted. */
  async #leaseAfter(before: StoredOwner | undefined, signal: AbortSignal): Promise<string> {
    const { gateway, leaseSeconds } = this.#parts;
    this.#renewedAt = this.#now();
    if (before?.lease !== undefined && (await renewLease(gateway, before.lease, signal))) {
      // Else its keys last until they have the new one.
      if ((await grantedSeconds(gateway, before.lease, signal)) === leaseSeconds) return before.lease;
    }
    return await grantLease(gateway, leaseSeconds, signal);
  }

  async #putOwner(before: StoredOwner | undefined, lease: string, signal: AbortSignal): Promise<number> {
    const { gateway, instance, run, machine, keys } = this.#parts;
    const [host] = keys.addresses;
    const record = { ...(host !== undefined && { host }), text: "dns11", machine, addresses: keys.addresses };
    const reply = await gateway.call(
      "/v3/kv/txn",
      {
        compare: [unchanged(this.#ownerKey, before?.revision ?? 0)],
        success: [
          {
            request_put: {
              key: encoded(this.#ownerKey),
              value: encoded(JSON.stringify({ ...record, instance, run })),
              lease,
            },
          },
        ],
      },
      signal,
    );
    // Another one was faster, or this very request was sent twice: what there is decides the next time.
    if (objectOf(reply)["succeeded"] !== true) throw machineTakenFault(machine);
    return revisionOf(reply);
  }

  async #list(signal: AbortSignal): Promise<void> {
    this.#isChangedByOthers = false;
    this.#listedAt = this.#now();
    await list(this.#parts.gateway, this.#parts.root, this.#own, signal);
    this.#change(undefined);
  }

  /** Renews the lease and writes, side by side: neither waits for the other. */
  async #hold(signal: AbortSignal): Promise<void> {
    const ended = new AbortController();
    const both = AbortSignal.any([signal, ended.signal]);
    const end = (error: unknown): never => {
      ended.abort();
      throw error;
    };
    await Promise.all([this.#renew(both).catch(end), this.#write(both).catch(end)]);
  }

  async #renew(signal: AbortSignal): Promise<void> {
    const { gateway, leaseSeconds } = this.#parts;
    const everyMs = (leaseSeconds * MS) / ETCD_LIMITS.renewals;
    for (let waitMs = everyMs; ;) {
      await this.#wait(waitMs, signal);
      if (signal.aborted || this.#claim === undefined) return;
      const askedAt = this.#now();
      try {
        if (!(await renewLease(gateway, this.#claim.lease, signal))) throw lost();
        this.#renewedAt = askedAt;
        waitMs = everyMs;
        if (this.#faults.lease !== undefined) this.#note("lease", undefined);
      } catch (error) {
        if (signal.aborted || isEtcdFault(error, ETCD_LEASE_LOST)) throw error;
        this.#note("lease", error);
        waitMs = Math.min(everyMs, ETCD_LIMITS.retryFirstMs * ETCD_LIMITS.renewals);
      }
    }
  }

  async #write(signal: AbortSignal): Promise<void> {
    for (let failures = 0; !signal.aborted;) {
      const isListDue = this.#isChangedByOthers && this.#now() - this.#listedAt >= ETCD_LIMITS.listAgainMs;
      // Before everything is known, what the run before has written stays as it is.
      if (!this.#parts.keys.isComplete || (this.#dirty.size === 0 && !isListDue)) {
        if (this.#parts.keys.isComplete) this.#note("write", undefined);
        await this.#woken(ETCD_LIMITS.listAgainMs, signal);
        continue;
      }
      try {
        if (isListDue) await this.#list(signal);
        failures = (await this.#writeBatch(signal)) ? 0 : failures + 1;
        // Again at once, with the keys as they are. Where another writer was faster each time, it waits.
        const waitMs = failures > 1 ? retryMs(failures - 1) : ETCD_LIMITS.writeEveryMs;
        await this.#wait(waitMs, signal);
      } catch (error) {
        if (signal.aborted || isEtcdFault(error, ETCD_LEASE_LOST)) throw error;
        this.#note("write", error);
        await this.#wait(retryMs(failures++), signal);
      }
    }
  }

  /** Returns false where keys are not as they were known, and throws a Fault; the keys are tried again then. */
  async #writeBatch(signal: AbortSignal): Promise<boolean> {
    const { gateway, keys } = this.#parts;
    const claim = this.#claim as Claim;
    const batch = this.#own.batch(this.#dirty, keys.wanted, { ...claim, keysMax: ETCD_LIMITS.writeKeys });
    if (batch.changes.size === 0) return true;
    try {
      const reply = await gateway.call(
        "/v3/kv/txn",
        {
          compare: [unchanged(this.#ownerKey, claim.revision), ...batch.compare],
          success: batch.success,
          failure: [{ request_range: { key: encoded(this.#ownerKey) } }],
        },
        signal,
      );
      this.counts.transactions++;
      if (objectOf(reply)["succeeded"] !== true) {
        await this.#refused(reply, claim, signal);
        return false;
      }
      this.counts.writes += batch.changes.size;
      this.#own.done(batch, claim.lease, revisionOf(reply));
      return true;
    } catch (error) {
      for (const key of batch.changes.keys()) this.#dirty.add(key);
      throw error;
    }
  }

  /** The owner is another one, or keys are not as they are known. */
  async #refused(reply: unknown, claim: Claim, signal: AbortSignal): Promise<void> {
    if (ownerOfFailure(reply)?.revision !== claim.revision) throw lost();
    await this.#list(signal);
    // Which of its keys others have written is not known, so nothing can be written beside them.
    if (this.#own.isCut) throw foreignKeysFault(this.#parts.root);
  }

  /** Renewals and writes fail for themselves: that one works says nothing about the other. */
  #note(part: Part, error: unknown): void {
    if (error !== undefined && !(error instanceof Fault)) guard.report(error, "elsewhere");
    if (error !== undefined) this.counts.failures++;
    this.#faults[part] = error instanceof Fault ? notWrittenFault(error, this.#parts.root) : undefined;
    const { fault } = this;
    if (fault?.code === this.#reported) return;
    this.#reported = fault?.code;
    this.#parts.onState(fault);
  }

  async #woken(ms: number, signal: AbortSignal): Promise<void> {
    const awake = new AbortController();
    this.#wake = () => awake.abort();
    signal.addEventListener("abort", this.#wake, { once: true });
    await this.#wait(ms, awake.signal);
    signal.removeEventListener("abort", this.#wake);
    this.#wake = () => {};
  }
}

function retryMs(failures: number): number {
  return backoffMs(failures, ETCD_LIMITS.retryFirstMs, ETCD_LIMITS.retryLastMs, Math.random());
}

function lost(): Fault {
  return new Fault(ETCD_LEASE_LOST, "the lease of this machine has ended", {
    remedy: "Nothing to do: everything is published again.",
  });
}

/**
 * The key that says which dns11 publishes as a machine. Every write has the condition that this key is as its
 * writer has left it, so two of them never mix, and whoever was replaced notices.
 *
 * Undefined while there is none.
 */
async function readOwner(gateway: Calls, key: string, signal: AbortSignal): Promise<StoredOwner | undefined> {
  return ownerIn(await gateway.call("/v3/kv/range", { key: encoded(key) }, signal));
}

/** In the reply to a transaction that failed: the key as it is. */
function ownerOfFailure(reply: unknown): StoredOwner | undefined {
  const [first] = listOf(objectOf(reply)["responses"]);
  return ownerIn(objectOf(first)["response_range"]);
}

/** The key is as it was left at this revision; 0: there is none. */
function unchanged(key: string, revision: number): object {
  return { target: "MOD", key: encoded(key), result: "EQUAL", mod_revision: String(revision) };
}

function ownerIn(reply: unknown): StoredOwner | undefined {
  const [stored] = readPage(reply).keys;
  return stored && { ...readValue(stored), lease: stored.lease, revision: stored.revision ?? 0 };
}

/** Of what is not valid, the owner is unknown. */
function readValue({ value }: StoredKey): Owner {
  try {
    const json = objectOf(JSON.parse(value?.toString() ?? ""));
    return { instance: textOf(json["instance"]), run: textOf(json["run"]) };
  } catch {
    return { instance: "", run: "" };
  }
}

/**
 * Returns the ID of a new lease. What is written with a lease ends with it, so that a machine that has failed is gone for all others.
 */
async function grantLease(gateway: Calls, seconds: number, signal: AbortSignal): Promise<string> {
  const reply = await gateway.call("/v3/lease/grant", { TTL: String(seconds) }, signal);
  return textOf(objectOf(reply)["ID"]);
}

/** Returns whether a lease exists: then it lasts as long as it was granted for, from now on. */
async function renewLease(gateway: Calls, lease: string, signal: AbortSignal): Promise<boolean> {
  // A stream of one message.
  const reply = await gateway.call("/v3/lease/keepalive", { ID: lease }, signal);
  const error = streamError(reply);
  if (error !== undefined) throw reportedFault("its gateway", error.code, error.message);
  return numberOf(objectOf(objectOf(reply)["result"])["TTL"]) > 0;
}

/** How long a lease was granted for; 0 if it is gone. */
async function grantedSeconds(gateway: Calls, lease: string, signal: AbortSignal): Promise<number> {
  const reply = objectOf(await gateway.call("/v3/lease/timetolive", { ID: lease }, signal));
  return numberOf(reply["TTL"]) === 0 ? 0 : numberOf(reply["grantedTTL"]);
}

/** Ends a lease, and everything that was written with it. */
async function revokeLease(gateway: Calls, lease: string, signal: AbortSignal): Promise<void> {
  try {
    await gateway.call("/v3/lease/revoke", { ID: lease }, signal);
  } catch (error) {
    if (!isEtcdFault(error, ETCD_LEASE_LOST)) throw error;
  }
}
