/**
 * Reconciler: makes what is attached into what should be, one namespace at a time and at its own pace. Whoever wants
 * something changed only says so; the worker looks at what is wanted now, not at how it came about.
 */
import { setImmediate as nextRound, setTimeout as sleep } from "node:timers/promises";

import { LIMITS } from "../../base/limits.ts";
import { backoffMs } from "../../base/lib/backoff.ts";
import { guard } from "../../base/lib/guard.ts";
import type { View } from "../../base/model/view.ts";
import type { NamespaceClaim } from "../namespace/proof.ts";
import { Attachment } from "./attachment.ts";
import type { AttachMode } from "./attach-mode.ts";
import type { AttachmentParts } from "./attachment-parts.ts";
import type { OpenEndpointFor } from "./endpoint.ts";
import type { AttachmentState } from "./attachment-state.ts";

/** One namespace that should be served, by the container that owns it. */
export interface DesiredAttachment {
  readonly claim: NamespaceClaim;
  readonly view: View;
  /** The same object as long as nothing else is to be done with the namespace. */
  readonly mode: AttachMode;
}

/** Told when a namespace's state changes, for the log. */
export type OnAttachmentState = (containerId: string, state: AttachmentState) => void;

interface ReconcilerEntry {
  desired: DesiredAttachment | undefined;
  attachment: Attachment | undefined;
  attempts: number;
  /** Trying again what failed, later and later. */
  timer: NodeJS.Timeout | undefined;
  /** A look at what foreign rules have changed. */
  changeTimer: NodeJS.Timeout | undefined;
  lastProbeMs: number;
}

/** Between two looks at a verification that somebody else began. */
const REPAIR_POLL_MS = 10;

/** What came of a repair: its rules are made anew, it is attached anew, or it cannot be. */
export type RepairResult = "verified" | "attached-anew" | "failed";

interface ReconcilerParts extends Omit<AttachmentParts, "openEndpoint" | "onState" | "onForeignChange"> {
  readonly openEndpointFor: OpenEndpointFor;
  /** Nothing is attached before this. */
  readonly startAfter?: Promise<void> | undefined;
  /** Whether attaching it may end the process: such a one is attached last and alone. */
  readonly isSuspect?: (containerId: string) => boolean;
  /** Whether every container that ran when we came is wanted by now, or not. */
  readonly isSynced?: () => boolean;
  /** Does something to a container's namespace, and has it known that it is being done. */
  readonly runAttach?: (containerId: string, work: () => void) => void;
}

export class Reconciler {
  readonly #parts: ReconcilerParts;
  readonly #onState: OnAttachmentState;
  readonly #entries = new Map<string, ReconcilerEntry>();
  readonly #queue = new Set<string>();
  /** Those that are being left, until they are. */
  readonly #leaving = new Map<Attachment, Promise<void>>();
  /** When the last of those who wait to touch a namespace that is left may do so. */
  #turn: Promise<void> = Promise.resolve();
  readonly #everyMs: number;
  readonly #verifyTimer: NodeJS.Timeout;
  readonly #toVerify = new Set<ReconcilerEntry>();
  #verifying = 0;
  #isWorking = false;
  #isStopped = false;

  constructor(parts: ReconcilerParts, onState: OnAttachmentState) {
    this.#parts = parts;
    const isTold = parts.ruleBackend.backend !== "iptables-legacy";
    this.#everyMs = isTold ? LIMITS.verifyEveryMs : LIMITS.verifyUnwatchedEveryMs;
    this.#onState = onState;
    this.#verifyTimer = setInterval(() => this.#verifyAll(), this.#everyMs);
    this.#verifyTimer.unref();
  }

  /** What is attached, or should be, by container. */
  *attachments(): Generator<[string, Attachment]> {
    for (const [id, { attachment }] of this.#entries) if (attachment !== undefined) yield [id, attachment];
  }

  attachmentOf(containerId: string): Attachment | undefined {
    return this.#entries.get(containerId)?.attachment;
  }

  /** Whether everything wanted is served, or its refusal known. */
  get isSettled(): boolean {
    if (this.#queue.size > 0) return false;
    for (const [, { state }] of this.attachments()) {
      if (state.kind === "opening" || state.kind === "verifying") return false;
    }
    return true;
  }

  setDesired(containerId: string, wanted: DesiredAttachment): void {
    const entry = this.#entries.get(containerId) ?? newEntry();
    this.#entries.set(containerId, entry);
    entry.desired = wanted;
    if (entry.attachment !== undefined && isStillFor(entry.attachment, wanted)) {
      entry.attachment.setView(wanted.view);
      // News of the container are a reason to try again what could not be done before.
      if (entry.attachment.state.kind === "failed") this.#mark(containerId);
    } else {
      this.#mark(containerId);
    }
  }

  /** Other addresses may be ours in there now. */
  updateCapture(containerId: string): void {
    const entry = this.#entries.get(containerId);
    if (entry?.attachment?.isOpen !== true) return;
    entry.attachment.updateCapture();
    this.#verify(entry);
  }

  /**
   * Looks at one namespace now instead of later: its rules are made anew, and where queries do not come through, or never
   * did, it is attached anew. Tells what came of it; undefined where nothing is wanted there.
   */
  async repair(containerId: string): Promise<RepairResult | undefined> {
    const entry = this.#entries.get(containerId);
    const attachment = entry?.attachment;
    if (entry === undefined || attachment === undefined || this.#isStopped) return undefined;
    if (attachment.state.kind !== "failed") {
      attachment.updateCapture();
      if (await isVerified(attachment)) return "verified";
    }
    clearTimeout(entry.timer);
    entry.attempts = 0;
    this.#attaching(containerId, () => attachment.open());
    return (await isVerified(attachment)) ? "attached-anew" : "failed";
  }

  clearDesired(containerId: string): void {
    const entry = this.#entries.get(containerId);
    if (entry === undefined) return;
    entry.desired = undefined;
    this.#mark(containerId);
  }

  /** Begins nothing any more: somebody else is about to serve by the same sockets. What is being left, is left first. */
  async pause(): Promise<void> {
    this.#isStopped = true;
    await Promise.all(this.#leaving.values());
    for (const [, attachment] of this.attachments()) attachment.pause();
  }

  /** Nobody did. */
  resume(): void {
    this.#isStopped = false;
    for (const [, attachment] of this.attachments()) attachment.resume();
    for (const id of this.#queue) this.#mark(id);
  }

  /** Somebody else serves everything by now: answers what has come, for as long as leaving may take, and goes. */
  async abandon(): Promise<void> {
    clearInterval(this.#verifyTimer);
    const attachments = [...this.attachments()].map(([, attachment]) => attachment);
    const deadlineMs = performance.now() + LIMITS.drainMs;
    while (attachments.some(isBusy) && performance.now() < deadlineMs) await sleep(LIMITS.drainQuietMs);
    for (const attachment of attachments) attachment.abandon();
    this.#entries.clear();
  }

  /** Drains and leaves every namespace. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearInterval(this.#verifyTimer);
    const attachments = [...this.attachments()].map(([, attachment]) => attachment);
    for (const { timer, changeTimer } of this.#entries.values())
      [timer, changeTimer].forEach((one) => clearTimeout(one));
    this.#entries.clear();
    await Promise.all([
      ...attachments.map(async (attachment) => await this.#leave(attachment)),
      ...this.#leaving.values(),
    ]);
  }

  #mark(containerId: string): void {
    this.#queue.add(containerId);
    if (!this.#isWorking) void this.#work();
  }

  async #work(): Promise<void> {
    this.#isWorking = true;
    await this.#parts.startAfter;
    // Queries come between two namespaces, however many namespaces there are to do.
    for (await nextRound(); this.#queue.size > 0 && !this.#isStopped; await nextRound()) {
      const containerId = this.#next();
      if (containerId === undefined) {
        await sleep(LIMITS.suspectCheckMs);
        continue;
      }
      this.#queue.delete(containerId);
      const isWhole = guard.run("attach", 0, () => this.#reconcile(containerId));
      const entry = this.#entries.get(containerId);
      if (!isWhole && entry !== undefined) this.#retryLater(containerId, entry);
    }
    this.#isWorking = false;
  }

  /** Whoever may end the process waits until that would cost nobody else their attachment. */
  #next(): string | undefined {
    const { isSuspect, isSynced: areAllKnown } = this.#parts;
    for (const id of this.#queue) if (isSuspect?.(id) !== true) return id;
    if (areAllKnown?.() === false) return undefined;
    for (const [, { state }] of this.attachments()) {
      if (state.kind === "opening" || state.kind === "verifying") return undefined;
    }
    const [first] = this.#queue;
    return first;
  }

  #reconcile(containerId: string): void {
    const entry = this.#entries.get(containerId);
    if (entry === undefined) return;
    const { desired: wanted, attachment } = entry;
    const isStale = attachment !== undefined && (wanted === undefined || !isStillFor(attachment, wanted));
    if (isStale) {
      entry.attachment = undefined;
      entry.attempts = 0;
      clearTimeout(entry.timer);
      this.#leaveLater(attachment);
    }
    if (wanted === undefined) {
      this.#entries.delete(containerId);
      return;
    }
    const leaving = this.#leavingAt(wanted.claim);
    if (leaving !== undefined) {
      void leaving.then(() => this.#mark(containerId));
      return;
    }
    entry.attachment ??= this.#newAttachment(containerId, wanted);
    const made = entry.attachment;
    this.#attaching(containerId, () => made.open());
    if (made.isOpen) this.#verify(entry);
  }

  #attaching(containerId: string, work: () => void): void {
    const { runAttach: attaching } = this.#parts;
    if (attaching === undefined) work();
    else attaching(containerId, work);
  }

  #newAttachment(containerId: string, { claim, mode, view }: DesiredAttachment): Attachment {
    const made: Attachment = new Attachment(claim, mode, view, {
      ...this.#parts,
      openEndpoint: this.#parts.openEndpointFor(containerId),
      onState: () => this.#onAttachmentState(containerId, made),
      onForeignChange: () => this.#onForeignChange(containerId),
    });
    return made;
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
   * Somebody changed rules there: probe soon, or, where we had to leave, try again soon; never more than once a second,
   * and not later because rules keep changing.
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

  /** Probes as soon as there is room among those that are under way. */
  #verify(entry: ReconcilerEntry): void {
    this.#toVerify.add(entry);
    for (const next of this.#toVerify) {
      if (this.#verifying >= LIMITS.verifyAtOnce || this.#isStopped) return;
      this.#toVerify.delete(next);
      void this.#verifyNow(next);
    }
  }

  async #verifyNow(entry: ReconcilerEntry): Promise<void> {
    this.#verifying++;
    entry.lastProbeMs = performance.now();
    try {
      await entry.attachment?.verify();
    } catch (error) {
      guard.report(error, "attach");
    } finally {
      this.#verifying--;
    }
    const [next] = this.#toVerify;
    if (next !== undefined) this.#verify(next);
  }

  #verifyAll(): void {
    const entries = [...this.#entries.values()].filter(({ attachment }) => attachment?.state.kind === "attached");
    const everyMs = this.#everyMs / Math.max(1, entries.length);
    for (const [index, entry] of entries.entries()) {
      // Spread over the whole period: a thousand namespaces are sixteen probes a second, not a thousand at once.
      setTimeout(() => this.#verify(entry), index * everyMs).unref();
    }
  }

  #leaveLater(attachment: Attachment): void {
    const done = this.#leave(attachment).finally(() => this.#leaving.delete(attachment));
    this.#leaving.set(attachment, done);
  }

  /** As long as we are in a namespace nobody else can be, not even we ourselves, to serve it otherwise or once more. */
  #leavingAt(claim: NamespaceClaim): Promise<void> | undefined {
    for (const [attachment, done] of this.#leaving) if (isSameClaim(attachment.claim, claim)) return done;
    return undefined;
  }

  async #leave(attachment: Attachment): Promise<void> {
    try {
      await this.#inTurn();
      await attachment.drain();
    } catch {
      // The namespace may have died with its container; its rules are nobody's then, and leaving goes on.
    }
    await this.#inTurn();
    attachment.close();
  }

  /** Where programs write the rules, a hundred namespaces left in one go are seconds in which nobody is answered. */
  async #inTurn(): Promise<void> {
    this.#turn = this.#turn.then(() => nextRound());
    await this.#turn;
  }
}

/** Whether somebody waits for an answer of ours. */
function isBusy({ endpoint }: Attachment): boolean {
  return endpoint !== undefined && (endpoint.inFlight > 0 || endpoint.tcpClientPorts.length > 0);
}

/** Whether queries come through from now on; a verification that was under way already is waited for. */
async function isVerified(attachment: Attachment): Promise<boolean> {
  const startMs = Date.now();
  await attachment.verify();
  for (;;) {
    const { state, isOpen } = attachment;
    if (state.kind === "attached" && state.verifiedMs >= startMs) return true;
    if (!isOpen || Date.now() > startMs + LIMITS.repairMs) return false;
    await sleep(REPAIR_POLL_MS);
  }
}

function newEntry(): ReconcilerEntry {
  return {
    desired: undefined,
    attachment: undefined,
    attempts: 0,
    timer: undefined,
    changeTimer: undefined,
    lastProbeMs: -Infinity,
  };
}

function isStillFor({ claim, mode }: Attachment, wanted: DesiredAttachment): boolean {
  return mode === wanted.mode && isSameClaim(claim, wanted.claim);
}

/** A restarted container has the same id and another namespace. */
function isSameClaim(a: NamespaceClaim, b: NamespaceClaim): boolean {
  return a.sandboxKey === b.sandboxKey && (a.sandboxKey !== "" || a.pid === b.pid);
}
