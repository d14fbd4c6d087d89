/**
 * Reconciler: attaches and detaches namespaces until they match the desired state, one namespace at a time. Callers
 * only set the desired state; the worker acts on what is desired now, not on the sequence of changes.
 */
import { setTimeout as sleep } from "node:timers/promises";

import { LIMITS } from "../../base/limits.ts";
import { drained, backoffMs } from "../../base/lib/retry.ts";
import { guard } from "../../base/lib/guard.ts";
import { ownSlice } from "../../base/lib/slices.ts";
import type { View } from "../../base/model/view.ts";
import type { Refusing } from "../../base/model/held-namespace.ts";
import type { NamespaceClaim } from "../namespace/proof.ts";
import type { NamespaceId } from "../namespace/namespace-runner.ts";
import { Attachment } from "./attachment.ts";
import type { AttachMode } from "./attach-mode.ts";
import type { AttachmentParts, OpenEndpointFor } from "./attachment-parts.ts";
import type { AttachmentState } from "./attachment-state.ts";
import { namespaceOf } from "./leave-serving.ts";
import { VerifyQueue, verifyAndWait } from "./verify-queue.ts";

/** One namespace that should be served, by the container that owns it. */
export interface DesiredAttachment {
  readonly claim: NamespaceClaim;
  readonly view: View;
  /** The same object as long as the namespace is to be served in the same way. */
  readonly mode: AttachMode;
}

/** Called when a namespace's state changes, for the log. */
type OnAttachmentState = (containerId: string, state: AttachmentState) => void;

interface ReconcilerEntry {
  desired: DesiredAttachment | undefined;
  attachment: Attachment | undefined;
  attempts: number;
  /** Retries a failed attachment, with backoff. */
  timer: NodeJS.Timeout | undefined;
  /** Probes after foreign rules changed. */
  changeTimer: NodeJS.Timeout | undefined;
  lastProbeMs: number;
  /** The container is not served, and Docker's resolver must not answer it. */
  isRefused: boolean;
}

/** The result of a repair: rules re-created, attached again, or neither worked. */
type RepairResult = "verified" | "reattached" | "failed";

interface ReconcilerParts extends Omit<
  AttachmentParts,
  "openEndpoint" | "onState" | "onForeignChange" | "onVerifyDue"
> {
  readonly openEndpointFor: OpenEndpointFor;
  /** Attaches nothing before this resolves. */
  readonly startAfter?: Promise<void> | undefined;
  /** Whether attaching this container may crash the process: it is attached last and alone. */
  readonly isSuspect?: (containerId: string) => boolean;
  /** Runs `work` on a container's namespace and records which container it is, in case the process dies. */
  readonly runAttach?: (containerId: string, work: () => Promise<void>) => Promise<void>;
  /** Nobody can refuse its queries, so that it goes back to Docker's resolver whatever its policy. */
  readonly onLeft?: ((containerId: string) => void) | undefined;
}

export class Reconciler {
  readonly #parts: ReconcilerParts;
  readonly #onState: OnAttachmentState;
  readonly #entries = new Map<string, ReconcilerEntry>();
  readonly #queue = new Set<string>();
  /** The namespaces of containers that are neither served nor left to Docker's resolver. */
  readonly #refused: RefusedNamespaces;
  readonly #policyRenewal = new PolicyRenewal((containerId) => this.updateCapture(containerId));
  /** Attachments that are being detached. */
  readonly #detaching = new Map<Attachment, Promise<void>>();
  readonly #verifyTimer: NodeJS.Timeout;
  readonly #verifications = new VerifyQueue<ReconcilerEntry>(async (entry) => await this.#verifyNow(entry));
  #isWorking = false;
  #isStopped = false;

  constructor(parts: ReconcilerParts, onState: OnAttachmentState) {
    this.#parts = parts;
    this.#onState = onState;
    this.#refused = new RefusedNamespaces(parts.refusing);
    this.#verifyTimer = setInterval(() => void this.#verifyAll(), LIMITS.verifyEveryMs);
    this.#verifyTimer.unref();
  }

  /** Attachments by container, whatever their state. */
  *attachments(): Generator<[string, Attachment]> {
    for (const [id, { attachment }] of this.#entries) if (attachment !== undefined) yield [id, attachment];
  }

  /** Undefined also while the container's attachment is of a namespace that is about to be left. */
  attachmentOf(containerId: string): Attachment | undefined {
    const { attachment, desired } = this.#entries.get(containerId) ?? {};
    return attachment && desired && isStillFor(attachment, desired) ? attachment : undefined;
  }

  /** Whether every desired namespace is attached or has failed. */
  get isSettled(): boolean {
    if (this.#queue.size > 0) return false;
    for (const [, { state }] of this.attachments()) {
      if (state.kind === "opening" || state.kind === "verifying") return false;
    }
    return true;
  }

  setDesired(containerId: string, desired: DesiredAttachment): void {
    const entry = this.#entries.get(containerId) ?? newEntry();
    this.#entries.set(containerId, entry);
    entry.desired = desired;
    entry.isRefused = false;
    this.#refused.delete(containerId);
    if (entry.attachment !== undefined && isStillFor(entry.attachment, desired)) {
      entry.attachment.setView(desired.view);
      // A change of the container is a reason to retry at once.
      if (entry.attachment.state.kind === "failed") this.#mark(containerId);
    } else {
      this.#mark(containerId);
    }
  }

  /** What the rules of this namespace depend on may have changed. */
  updateCapture(containerId: string): void {
    const entry = this.#entries.get(containerId);
    const attachment = entry?.attachment;
    if (entry === undefined || attachment === undefined) return;
    void attachment
      .updateCapture()
      .then(() => this.#verify(entry))
      .catch((error: unknown) => guard.report(error, "attach"));
  }

  /** Re-creates the rules now, and attaches again if queries do not arrive then. Undefined if it is not to be served. */
  async repair(containerId: string): Promise<RepairResult | undefined> {
    const entry = this.#entries.get(containerId);
    const attachment = entry?.attachment;
    if (entry === undefined || attachment === undefined || this.#isStopped) return undefined;
    if (attachment.state.kind !== "failed") {
      await attachment.endOf(attachment.updateCapture(), "late");
      attachment.retryExtra();
      if (await verifyAndWait(attachment)) return "verified";
    }
    clearTimeout(entry.timer);
    entry.attempts = 0;
    await this.#attaching(containerId, async () => await attachment.endOf(attachment.open(), "late"));
    return (await verifyAndWait(attachment)) ? "reattached" : "failed";
  }

  /** Policies may have changed. */
  renewPolicies(): void {
    this.#policyRenewal.renew(this.attachments());
  }

  /** The container is neither to be served nor to be left to Docker's resolver: the keeper refuses its queries. */
  refuse(claim: NamespaceClaim): void {
    const { containerId } = claim;
    const entry = this.#entries.get(containerId);
    if (entry !== undefined) entry.isRefused = true;
    this.#clear(containerId);
    const attachment =
      entry?.attachment !== undefined && isSameClaim(entry.attachment.claim, claim) ? entry.attachment : undefined;
    const id = attachment?.namespaceId ?? namespaceOf(claim, this.#parts.prove);
    if (id === undefined) return;
    const isRefused = this.#refused.add(containerId, id);
    // A namespace that is served now is left to the keeper when it is detached.
    if (!isRefused && attachment === undefined) this.#parts.onLeft?.(containerId);
  }

  clearDesired(containerId: string): void {
    this.#refused.end(containerId);
    this.#clear(containerId);
  }

  #clear(containerId: string): void {
    const entry = this.#entries.get(containerId);
    if (entry === undefined) return;
    entry.desired = undefined;
    this.#mark(containerId);
  }

  /**
   * Starts nothing more, because the next process is about to take over the sockets. Finishes what it has begun, unless that
   * waits for a lock.
   */
  async pause(): Promise<void> {
    this.#isStopped = true;
    this.#verifications.stop();
    const attachments = [...this.attachments()].map(([, attachment]) => attachment);
    await Promise.all([
      ...[...this.#detaching].map(async ([attachment, done]) => await attachment.endOf(done, "slow")),
      ...attachments.map(async (attachment) => await attachment.endOf(attachment.idle(), "slow")),
    ]);
    for (const attachment of attachments) attachment.pause();
  }

  /** Continues after a takeover that failed. */
  resume(): void {
    this.#isStopped = false;
    this.#verifications.resume();
    for (const [, attachment] of this.attachments()) {
      void attachment.resume().catch((error: unknown) => guard.report(error, "attach"));
    }
    for (const id of this.#queue) this.#mark(id);
  }

  /** Lets go after a takeover: answers the queries in flight, within the time limit for draining. */
  async abandon(): Promise<void> {
    clearInterval(this.#verifyTimer);
    const attachments = [...this.attachments()].map(([, attachment]) => attachment);
    await drained(() => attachments.some(isBusy), LIMITS);
    for (const attachment of attachments) attachment.abandon();
    this.#entries.clear();
  }

  /** Drains and detaches every namespace. Where that waits for a lock for too long, the kernel does it when it is free. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#verifications.stop();
    clearInterval(this.#verifyTimer);
    const attachments = [...this.attachments()].map(([, attachment]) => attachment);
    for (const each of this.#entries.values()) [each.timer, each.changeTimer].forEach((timer) => clearTimeout(timer));
    this.#entries.clear();
    for (const attachment of attachments) this.#detachLater(attachment, true);
    const detaching = [...this.#detaching];
    await Promise.all(detaching.map(async ([attachment, done]) => await attachment.endOf(done, "late")));
  }

  #mark(containerId: string): void {
    this.#queue.add(containerId);
    if (!this.#isWorking) void this.#work();
  }

  async #work(): Promise<void> {
    this.#isWorking = true;
    await this.#parts.startAfter;
    // Queries are answered between two namespaces.
    for (await ownSlice(); this.#queue.size > 0 && !this.#isStopped; await ownSlice()) {
      const containerId = this.#next();
      if (containerId === undefined) {
        await sleep(LIMITS.suspectCheckMs);
        continue;
      }
      this.#queue.delete(containerId);
      try {
        await this.#reconcile(containerId);
      } catch (error) {
        guard.report(error, "attach");
        const entry = this.#entries.get(containerId);
        if (entry !== undefined) this.#retryLater(containerId, entry);
      }
    }
    this.#isWorking = false;
  }

  /** Holds back suspects until a crash would cost no other container its attachment. */
  #next(): string | undefined {
    const { isSuspect } = this.#parts;
    for (const id of this.#queue) if (isSuspect?.(id) !== true) return id;
    for (const [, { state }] of this.attachments()) {
      if (state.kind === "opening" || state.kind === "verifying") return undefined;
    }
    const [first] = this.#queue;
    return first;
  }

  async #reconcile(containerId: string): Promise<void> {
    const entry = this.#entries.get(containerId);
    if (entry === undefined) return;
    const { desired, attachment: current } = entry;
    const isStale = current !== undefined && (desired === undefined || !isStillFor(current, desired));
    if (isStale) {
      entry.attachment = undefined;
      entry.attempts = 0;
      clearTimeout(entry.timer);
      this.#detachLater(current, entry.isRefused);
    }
    if (desired === undefined) {
      this.#entries.delete(containerId);
      return;
    }
    const detaching = this.#detachingAt(desired.claim);
    if (detaching !== undefined) {
      void detaching.then(() => this.#mark(containerId));
      return;
    }
    entry.attachment ??= this.#newAttachment(containerId, desired);
    const attachment = entry.attachment;
    // The attachment is opened when the lock is free; `#onForeignChange` reports that.
    if (attachment.isLocked) return;
    const opened = this.#verifyAfter(entry, attachment.open());
    // The next container does not wait until somebody in this one releases a lock.
    await this.#attaching(containerId, async () => await attachment.endOf(opened, "slow"));
  }

  async #attaching(containerId: string, work: () => Promise<void>): Promise<void> {
    const { runAttach } = this.#parts;
    await (runAttach === undefined ? work() : runAttach(containerId, work));
  }

  #newAttachment(containerId: string, { claim, mode, view }: DesiredAttachment): Attachment {
    const attachment: Attachment = new Attachment(claim, mode, view, {
      ...this.#parts,
      openEndpoint: this.#parts.openEndpointFor(containerId),
      onState: () => this.#onAttachmentState(containerId, attachment),
      onForeignChange: () => this.#onForeignChange(containerId),
      onVerifyDue: () => this.#onVerifyDue(containerId, attachment),
    });
    return attachment;
  }

  #onAttachmentState(containerId: string, attachment: Attachment): void {
    const entry = this.#entries.get(containerId);
    if (attachment.state.kind === "failed" && entry?.attachment === attachment) this.#retryLater(containerId, entry);
    if (attachment.state.kind === "attached" && entry !== undefined) entry.attempts = 0;
    this.#onState(containerId, attachment.state);
  }

  #retryLater(containerId: string, entry: ReconcilerEntry): void {
    const waitMs = backoffMs(entry.attempts++, LIMITS.retryFirstMs, LIMITS.retryLastMs, Math.random());
    clearTimeout(entry.timer);
    entry.timer = setTimeout(() => this.#mark(containerId), waitMs);
    entry.timer.unref();
  }

  /**
   * Foreign rules changed: probe soon, or retry soon if the attachment has failed. At most once a second, and without
   * further delay if rules keep changing.
   */
  #onForeignChange(containerId: string): void {
    const entry = this.#entries.get(containerId);
    if (entry === undefined || this.#isStopped || entry.changeTimer !== undefined) return;
    const waitMs = Math.max(LIMITS.verifyQuietMs, entry.lastProbeMs + LIMITS.verifyAtMostEveryMs - performance.now());
    entry.changeTimer = setTimeout(() => {
      entry.changeTimer = undefined;
      guard.run("timer", 0, () => {
        if (entry.attachment?.state.kind === "failed") this.#mark(containerId);
        else this.#verify(entry);
      });
    }, waitMs);
    entry.changeTimer.unref();
  }

  #onVerifyDue(containerId: string, attachment: Attachment): void {
    const entry = this.#entries.get(containerId);
    if (entry?.attachment === attachment) this.#verify(entry);
  }

  /** `opening` resolves to whether there is something to verify. */
  async #verifyAfter(entry: ReconcilerEntry, opening: Promise<boolean>): Promise<void> {
    if (await opening) this.#verify(entry);
  }

  #verify(entry: ReconcilerEntry): void {
    this.#verifications.add(entry);
  }

  async #verifyNow(entry: ReconcilerEntry): Promise<void> {
    entry.lastProbeMs = performance.now();
    const { attachment } = entry;
    await attachment?.endOf(attachment.verify(), "slow");
  }

  /** Spread over the whole interval: a thousand namespaces are sixteen probes a second, not a thousand at once. */
  async #verifyAll(): Promise<void> {
    const entries = [...this.#entries.values()].filter(({ attachment }) => attachment?.state.kind === "attached");
    for (const entry of entries) {
      this.#verify(entry);
      await sleep(LIMITS.verifyEveryMs / entries.length, undefined, { ref: false });
    }
  }

  /** `isRefused`: if a policy is enforced there, queries are refused from then on. */
  #detachLater(attachment: Attachment, isRefused = false): void {
    const done = this.#detach(attachment, isRefused).finally(() => this.#detaching.delete(attachment));
    this.#detaching.set(attachment, done);
  }

  /** A namespace that is being detached cannot be attached again, in whatever mode, until that is done. */
  #detachingAt(claim: NamespaceClaim): Promise<void> | undefined {
    for (const [attachment, done] of this.#detaching) if (isSameClaim(attachment.claim, claim)) return done;
    return undefined;
  }

  /** Does not throw. */
  async #detach(attachment: Attachment, isRefused: boolean): Promise<void> {
    try {
      if (isRefused && (await attachment.leave())) return;
      if (isRefused && attachment.isOpen) this.#parts.onLeft?.(attachment.claim.containerId);
      await ownSlice();
      await attachment.drain();
    } catch {
      // The namespace may be gone with its container, and its rules with it; go on and close.
    }
    await ownSlice();
    try {
      await attachment.close();
    } catch (error) {
      guard.report(error, "attach");
    }
  }
}

/** Whether a client waits for one of our answers. */
function isBusy({ endpoint }: Attachment): boolean {
  return endpoint !== undefined && (endpoint.inFlight > 0 || endpoint.tcpClientPorts.length > 0);
}

function newEntry(): ReconcilerEntry {
  return {
    desired: undefined,
    attachment: undefined,
    attempts: 0,
    timer: undefined,
    changeTimer: undefined,
    lastProbeMs: -Infinity,
    isRefused: false,
  };
}

function isStillFor({ claim, mode }: Attachment, desired: DesiredAttachment): boolean {
  return mode === desired.mode && isSameClaim(claim, desired.claim);
}

/** A restarted container keeps its id but has a new namespace. */
function isSameClaim(a: NamespaceClaim, b: NamespaceClaim): boolean {
  return a.sandboxKey === b.sandboxKey && (a.sandboxKey !== "" || a.pid === b.pid);
}

/**
 * Has the namespaces that are served follow changed policies: their keeper is told at once, their rules follow one after
 * the other, because those of many may take as many programs.
 */
export class PolicyRenewal {
  readonly #updateRules: (containerId: string) => void;
  #last: Promise<void> = Promise.resolve();

  constructor(updateRules: (containerId: string) => void) {
    this.#updateRules = updateRules;
  }

  renew(attachments: Iterable<readonly [string, Attachment]>): void {
    const changed = [...attachments].filter(([, attachment]) => attachment.renewPolicy());
    if (changed.length === 0) return;
    const follow = async (): Promise<void> => {
      for (const [id, attachment] of changed) {
        this.#updateRules(id);
        await attachment.endOf(attachment.idle(), "slow");
      }
    };
    this.#last = this.#last.then(follow).catch((error: unknown) => guard.report(error, "attach"));
  }
}

/**
 * The namespace of each container that is not to be served, nor to be left to Docker's resolver: the keeper
 * refuses its queries.
 */
class RefusedNamespaces {
  readonly #refusing: Refusing | undefined;
  readonly #byContainer = new Map<string, NamespaceId>();

  constructor(refusing: Refusing | undefined) {
    this.#refusing = refusing;
  }

  /** Returns whether the keeper has it, or is about to get it; a container that has started again has another one. */
  add(containerId: string, id: NamespaceId): boolean {
    const before = this.#byContainer.get(containerId);
    if (before === id) return true;
    if (before !== undefined) this.#refusing?.end(before);
    this.#byContainer.set(containerId, id);
    return this.#refusing?.goOn(id) === true;
  }

  /** The container is served from now on, with what the keeper has of its namespace. */
  delete(containerId: string): void {
    this.#byContainer.delete(containerId);
  }

  /** The container may go back to Docker's resolver. */
  end(containerId: string): void {
    const id = this.#byContainer.get(containerId);
    this.#byContainer.delete(containerId);
    if (id !== undefined) this.#refusing?.end(id);
  }
}
