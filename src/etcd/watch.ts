/**
 * Watch: one stream with the changes below a prefix from a revision on, checked for life: a member without a leader, or
 * behind a broken path, says nothing at all.
 */
import type { Fault } from "../base/lib/fault.ts";
import { guard } from "../base/lib/guard.ts";
import { sleep } from "../base/lib/sleep.ts";
import { inSlices } from "../base/lib/slices.ts";
import { LIMITS } from "../base/limits.ts";
import { type StoredKeys, endOf } from "../base/model/stored-key.ts";
import { ETCD_TOKEN, canceledFault, isEtcdFault, noEtcdFault, reportedFault } from "./etcd-fault.ts";
import type { Gateway } from "./gateway.ts";
import type { Member, MessageStream } from "./member.ts";
import { type WatchMessage, encoded, readWatchMessage, revisionOf, streamError } from "./messages.ts";

export interface WatchParts {
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
export type WatchEnd =
  | { readonly kind: "ended" | "relist"; readonly fault?: undefined }
  | { readonly kind: "failed"; readonly fault: Fault };

export class Watch {
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
    for (let waitMs = 0; ; waitMs = LIMITS.etcdCheckMs) {
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
export async function countKeys(
  gateway: Gateway,
  member: Member,
  prefix: string,
  signal: AbortSignal,
): Promise<number> {
  const body = { key: encoded(prefix), count_only: true };
  const revision = revisionOf(await gateway.callOn(member, "/v3/kv/range", body, signal));
  if (revision === 0) throw noEtcdFault("has no revision");
  return revision;
}
