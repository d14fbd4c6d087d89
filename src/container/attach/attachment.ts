/**
 * Attachment: dns11 in one network namespace, from opening to closing. `attachment-state.ts` lists the ways to leave.
 *
 *   opening --(sockets, rules)--> verifying --(probe succeeded)--> attached
 *      |                             |                                |  foreign rules changed, or the interval passed:
 *      | a step failed               | probe failed twice             |  probe again while serving
 *      v                             v                                v
 *    failed <-------------------- handed back to Docker's resolver <--- probe failed twice
 *      |  after a backoff, or when foreign rules change
 *      +--> trial, still "failed": rules redirect only probes --(probe succeeded; install all rules)--> attached
 *
 *   any state --(no longer desired)--> draining --> closed
 *
 * After any failure the namespace is left as it was found and Docker's resolver answers. A retry that would fail again
 * affects only our own probes, never a client's query. But where a policy is enforced, what serves already stays, "failed".
 *
 * Each change of the namespace is a job of its own (`NamespaceJobs`), and what was decided before it waited is checked
 * again when it begins.
 */
import { LIMITS } from "../../base/limits.ts";
import { NftWatch } from "../../kernel/nft-watch.ts";
import { isPoolFull } from "../../kernel/in-pool.ts";
import { closeQuietly } from "../../kernel/libc.ts";
import { Fault, isInternalError, reasonWithRemedy } from "../../base/lib/fault.ts";
import { guard } from "../../base/lib/guard.ts";
import { ownSlice } from "../../base/lib/slices.ts";
import type { FailureCode } from "../../base/model/finding.ts";
import type { View } from "../../base/model/view.ts";
import { type NamespaceId, NamespaceJobs, type WaitStage } from "../namespace/namespace-runner.ts";
import type { NamespaceClaim } from "../namespace/proof.ts";
import { culpritsIn } from "../rules/culprit.ts";
import { type ListenAddress, type TablePlan, drainingPlan, servingPlan, trialPlan } from "../rules/plan.ts";
import type { ProbeResult } from "../rules/probe.ts";
import type { AttachMode } from "./attach-mode.ts";
import { KeeperHold } from "./keeper-hold.ts";
import { abandonServing, leaveServing, pauseServing, untilQuiet } from "./leave-serving.ts";
import {
  type OpenNamespace,
  closeLater,
  openNamespace,
  openServing,
  reinstall,
  removeRules,
  updateServing,
} from "./open-serving.ts";
import type { AttachmentParts, Endpoint } from "./attachment-parts.ts";
import type { ExtraNamespace } from "./namespace-extra.ts";
import {
  type Serving,
  type ServingProbeRequest,
  listenAddressesOf,
  planInputOf,
  probeServing,
  servedNamespaceOf,
} from "./serving.ts";
import { type AttachmentState, failureCode, lockedReason, lockedState } from "./attachment-state.ts";

const NO_PROBE = "cannot send a probe: dns11 is out of file descriptors or memory";

export class Attachment {
  readonly claim: NamespaceClaim;
  readonly mode: AttachMode;
  readonly #parts: AttachmentParts;
  readonly #jobs = new NamespaceJobs((stage, waitedMs) => this.#onWait(stage, waitedMs));
  #view: View;
  #state: AttachmentState = { kind: "opening" };
  #opened: OpenNamespace | undefined;
  #watch: NftWatch | undefined;
  #serving: Serving | undefined;
  readonly #hold: KeeperHold;
  #isVerifying = false;
  /** An update of the capture has failed. */
  #isOutdated = false;
  #isDraining = false;
  #isClosing = false;
  /** Undefined unless a change has waited for a lock for too long. */
  #lockedReason: string | undefined;
  /** An update of the capture that waits for its turn. */
  #nextUpdate: Promise<void> | undefined;
  #repairs = 0;
  /** Flushed rules were re-created, and no probe has shown yet that it helped. */
  #isRepairUnproven = false;
  /** Netlink ports under which the kernel reports our own changes, including those of a socket that is closing. */
  readonly #ownPorts = new Set<number>();
  /** Client ports of TCP connections to Docker's resolver that were open when we attached. */
  #spared: readonly number[] = [];
  /** On the clock of `performance.now`: the wall clock, whose times the state has, may be set back. */
  #attachedAtMs = 0;

  constructor(claim: NamespaceClaim, mode: AttachMode, view: View, parts: AttachmentParts) {
    this.claim = claim;
    this.mode = mode;
    this.#view = view;
    this.#parts = parts;
    this.#hold = new KeeperHold(claim, parts, () => this.#opened && { id: this.#opened.id, spared: this.#spared });
  }

  get state(): AttachmentState {
    return this.#state;
  }

  get namespaceId(): NamespaceId | undefined {
    return this.#opened?.id;
  }

  get listening(): readonly ListenAddress[] {
    return listenAddressesOf(this.#serving?.pairs ?? []);
  }

  get endpoint(): Endpoint | undefined {
    return this.#serving?.endpoint;
  }

  /** How often re-creating flushed rules made queries arrive again. */
  get repairs(): number {
    return this.#repairs;
  }

  setView(view: View): void {
    this.#view = view;
    this.#serving?.endpoint.setView(view);
  }

  /** Creates sockets and rules in the namespace, and starts serving: all of it or nothing. Returns whether it serves. */
  async open(): Promise<boolean> {
    return await this.#jobs.run(async () => {
      if (this.#isClosing || this.#serving !== undefined) return this.isOpen;
      try {
        this.#opened ??= openNamespace(this.claim, this.#parts);
        this.#serving = await this.#startServing(this.#opened);
        // After a failure the state stays "failed" until a probe succeeds.
        if (this.#state.kind === "opening") this.#become({ kind: "verifying", sinceMs: Date.now() });
      } catch (error) {
        await this.#failWith(error, "ATTACH_FAILED");
      }
      return this.isOpen;
    });
  }

  /** Whether a change has waited for a lock of the namespace for so long that it is left alone until that is free. */
  get isLocked(): boolean {
    return this.#jobs.isLate;
  }

  /** Why a change cannot be made, while the namespace is served as it is; undefined if none waits. */
  get warning(): string | undefined {
    return this.#state.kind === "attached" ? this.#lockedReason : undefined;
  }

  /** Resolves when the changes that have begun are made. */
  async idle(): Promise<void> {
    await this.#jobs.idle();
  }

  /** Resolves when `work`, a call of this attachment, has ended, or waits for a lock: for a moment, or for too long. */
  async endOf(work: Promise<unknown>, orWaits: "slow" | "late"): Promise<void> {
    await this.#jobs.endOf(work, orWaits);
  }

  /** Whether rules are installed and can be verified. */
  get isOpen(): boolean {
    return this.#serving !== undefined;
  }

  /**
   * Sends a nonce query through the rules. After one failure on trial, or two in a row while serving, it has failed.
   */
  async verify(): Promise<void> {
    const serving = this.#serving;
    if (serving === undefined) return;
    if (this.#isVerifying || this.#isDraining || this.isLocked) return;
    this.#isVerifying = true;
    const isCurrent = (): boolean => this.#serving === serving && !this.#isDraining;
    try {
      if (this.#isOutdated) await this.updateCapture();
      if (!isCurrent()) return;
      let result = await this.#probe(serving);
      if (result.kind === "works" && serving.isTrial && isCurrent()) {
        await this.#replaceRules(serving, () => servingPlan(planInputOf(serving, this.#spared)));
        serving.isTrial = false;
        this.#hold.renew();
        if (!isCurrent()) return;
        await this.#markVerified();
        // Probe again without the trial mark: foreign rules that match marks may treat clients' queries differently.
        result = await this.#probe(serving);
      }
      if (serving.extra !== undefined) result = await serving.extra.settle(result);
      if (result.kind === "broken" && !serving.isTrial && isCurrent()) {
        const wereReinstalled = await this.#jobs.run(
          async () => isCurrent() && (await reinstall(serving, this.#spared, this.#parts)),
        );
        if (!isCurrent()) return;
        if (wereReinstalled) this.#isRepairUnproven = true;
        result = await this.#probe(serving);
      }
      if (this.#isRepairUnproven && result.kind === "works") {
        this.#isRepairUnproven = false;
        this.#repairs++;
      }
      // A draining namespace receives no new queries, so a probe must fail.
      if (!isCurrent()) return;
      if (result.kind === "works") await this.#completeVerification(serving);
      else if (result.kind === "broken") await this.#failVerification(serving, result.failures);
      // An attached namespace goes on being served, and is probed again later.
      else if (this.#state.kind !== "attached") throw new Fault("PROBE_FAILED" satisfies FailureCode, NO_PROBE);
    } catch (error) {
      if (this.#serving === serving) await this.#jobs.run(async () => await this.#failWith(error, "PROBE_FAILED"));
    } finally {
      this.#isVerifying = false;
      serving.extra?.verified();
    }
  }

  /** What could not be in the namespace besides sockets and rules is tried again at the next verification. */
  retryExtra(): void {
    this.#serving?.extra?.retry();
  }

  /** What its rules depend on may have changed: binds what is missing and re-creates the rules in one step. */
  async updateCapture(): Promise<void> {
    // An update that has not begun will see this change, too.
    this.#nextUpdate ??= this.#jobs.run(async () => {
      this.#nextUpdate = undefined;
      await this.#update();
    });
    await this.#nextUpdate;
  }

  /** Call in a job. */
  async #update(): Promise<void> {
    const serving = this.#serving;
    if (serving === undefined || this.#isDraining) return;
    try {
      await updateServing(serving, { mode: this.mode, isEnforced: this.#hold.isEnforced }, this.#spared);
      this.#isOutdated = false;
      this.#hold.renew();
    } catch (error) {
      this.#isOutdated = true;
      await this.#failWith(error, "REFIT_FAILED");
    }
  }

  /** Sends new queries to Docker's resolver from now on; queries in flight are still answered. */
  async drain(): Promise<void> {
    const serving = this.#serving;
    if (serving === undefined) return;
    this.#isDraining = true;
    const { endpoint, rules } = serving;
    await this.#jobs.run(async () => {
      if (this.#serving !== serving) return;
      await this.#withdraw();
      await rules.replaceRules(drainingPlan(planInputOf(serving, this.#spared), endpoint.tcpClientPorts));
    });
    await untilQuiet(endpoint);
    if (this.#opened !== undefined) await this.mode.undoInSlices?.(this.#opened.netns.within);
  }

  /** Accepts no new queries and touches no rule: the next process is about to take over the same sockets. */
  pause(): void {
    this.#isDraining = true;
    if (this.#serving === undefined) return;
    pauseServing(this.#serving);
    this.#hold.renew();
  }

  /** Continues after a takeover that failed. */
  async resume(): Promise<void> {
    this.#isDraining = false;
    this.#serving?.endpoint.resume();
    this.#serving?.extra?.takePlace();
    await this.updateCapture();
  }

  /** Policies may have changed. Returns whether the rules have to follow. */
  renewPolicy(): boolean {
    this.#hold.renewPolicy();
    return this.#serving !== undefined && this.#serving.closesResolver !== this.#hold.isEnforced();
  }

  /** Lets go, where Docker's resolver must not answer: the keeper refuses all queries. Returns whether it does. */
  async leave(): Promise<boolean> {
    const serving = this.#serving;
    if (serving === undefined || this.#isDraining || !this.#hold.isRefusing) return false;
    this.#isDraining = true;
    const isLeft = await leaveServing(serving, this.#hold, this.#parts.refusing);
    if (isLeft) this.abandon();
    else this.#isDraining = false;
    return isLeft;
  }

  /** Lets go after a takeover: another process serves the namespace. Rules and sockets stay, and the program until this one exits. */
  abandon(): void {
    const serving = this.#serving;
    this.#serving = undefined;
    this.#hold.forget();
    this.#isClosing = true;
    if (serving !== undefined) abandonServing(serving);
    this.#leave();
  }

  /** Stops serving at once and removes everything. */
  async close(): Promise<void> {
    this.#isClosing = true;
    await this.#jobs.run(async () => {
      if (this.#state.kind === "closed") return;
      await this.#stopServing();
      this.#leave();
    });
  }

  #leave(): void {
    const watch = this.#watch;
    closeLater(() => watch?.close());
    if (this.#opened !== undefined) closeQuietly(this.#opened.netns.fd);
    this.#opened = undefined;
    this.#become({ kind: "closed" });
  }

  async #probe(serving: Serving, request: ServingProbeRequest = {}): Promise<ProbeResult> {
    return await probeServing(serving, this.#parts.runner, request);
  }

  /** `plan` is made when it is its turn; nothing is changed if the namespace is no longer served by then. */
  async #replaceRules(serving: Serving, plan: () => readonly TablePlan[]): Promise<void> {
    await this.#jobs.run(async () => {
      if (this.#serving === serving) await serving.rules.replaceRules(plan());
    });
  }

  async #startServing(opened: OpenNamespace): Promise<Serving> {
    const view = this.#view;
    this.#isOutdated = false;
    const { serving, spared } = await openServing(opened, {
      containerId: this.claim.containerId,
      pid: this.claim.pid,
      mode: this.mode,
      view,
      parts: this.#parts,
      isTrial: this.#state.kind === "failed",
      ownPorts: this.#ownPorts,
      watchRules: () =>
        void (this.#watch ??= watchRules(this.#ownPorts, this.#parts, () => this.#serving?.extra?.rulesChanged())),
    });
    this.#spared = spared;
    // The view may have changed while the rules were installed.
    if (this.#view !== view) serving.endpoint.setView(this.#view);
    serving.extra?.serve(this.#namespaceOf(serving));
    this.#hold.begin(serving);
    return serving;
  }

  /** As what is in it besides sees it. */
  #namespaceOf(serving: Serving): ExtraNamespace {
    const isCurrent = (): boolean => this.#serving === serving && !this.#isDraining;
    return {
      netns: serving.netns,
      clientNumber: serving.endpoint.clientNumber,
      get udpPort() {
        return serving.pairs[0]?.listening.udpPort;
      },
      get isTrial() {
        return serving.isTrial;
      },
      get isCurrent() {
        return isCurrent();
      },
      replaceRules: async () => {
        const plan = serving.isTrial ? trialPlan : servingPlan;
        await this.#replaceRules(serving, () => plan(planInputOf(serving, this.#spared)));
      },
      probe: async (protocols) => await this.#probe(serving, { protocols }),
      renewHold: () => this.#hold.renew(),
      verify: () => this.#parts.onVerifyDue?.(),
      endOf: async (work) => await this.endOf(work, "slow"),
    };
  }

  async #markVerified(): Promise<void> {
    const sinceMs = this.#state.kind === "attached" ? this.#state.sinceMs : Date.now();
    if (this.#state.kind !== "attached") this.#attachedAtMs = performance.now();
    await this.#stopSparing();
    this.#become({ kind: "attached", sinceMs, verifiedMs: Date.now() });
  }

  /** Runs the mode's own checks before the namespace counts as verified. */
  async #completeVerification(serving: Serving): Promise<void> {
    await this.mode.onVerified(servedNamespaceOf(serving, this.#parts.runner));
    if (this.#serving === serving && !this.#isDraining && !this.#isOutdated) await this.#markVerified();
  }

  /** By the first routine verification the connections that were open when we attached have ended. */
  async #stopSparing(): Promise<void> {
    const serving = this.#serving;
    if (this.#state.kind !== "attached" || this.#spared.length === 0 || serving === undefined) return;
    if (performance.now() - this.#attachedAtMs < LIMITS.verifyEveryMs / 2) return;
    this.#spared = [];
    await this.#replaceRules(serving, () => servingPlan(planInputOf(serving, this.#spared)));
  }

  /** The removal of our rules gets a round of its own, after the search. */
  async #failVerification(serving: Serving, failures: readonly string[]): Promise<void> {
    const reason = `queries do not reach dns11: ${failures.join("; ")}`;
    await this.#jobs.run(async () => {
      const culprits = await culpritsIn(serving.netns);
      await ownSlice();
      if (this.#serving !== serving || this.#isDraining) return;
      await this.#fail("UNVERIFIED" satisfies FailureCode, reason, culprits);
    });
  }

  async #failWith(error: unknown, fallback: FailureCode): Promise<void> {
    if (isInternalError(error)) guard.report(error, "attach");
    await this.#fail(failureCode(error, fallback), reasonWithRemedy(error), []);
  }

  /** Call in a job. */
  async #fail(code: string, reason: string, culprits: readonly string[]): Promise<void> {
    const isHeld = this.#hold.staysClosed;
    if (!isHeld) await this.#stopServing();
    if (!this.#isClosing) this.#become({ kind: "failed", code, reason, culprits, atMs: Date.now(), isHeld });
  }

  /** Call in a job. Queries that still arrive are answered until the rules are gone. */
  async #stopServing(): Promise<void> {
    const serving = this.#serving;
    if (serving === undefined) return;
    this.#serving = undefined;
    await this.#withdraw();
    // The rules first, so that nothing is redirected to sockets that are about to close.
    await removeRules(serving.rules, this.#ownPorts);
    serving.isEnded = true;
    serving.endpoint.close();
    serving.passage.end();
    this.#hold.release();
    this.#parts.onServing?.(this.claim.containerId, serving.endpoint.counters, false);
    serving.extra?.close();
    await serving.netns.read(() => this.mode.undo?.());
  }

  async #withdraw(): Promise<void> {
    if (this.#opened !== undefined) await this.mode.withdraw(this.#opened.netns.within);
  }

  /** Somebody holds the lock of the namespace's rules, or one that all namespaces share; or has released it. */
  #onWait(stage: WaitStage | "done", waitedMs: number): void {
    // The keeper leaves a namespace for last whose lock is held.
    this.#hold.renew();
    if (stage === "slow" || (stage === "done" && this.#lockedReason === undefined)) return;
    const isOwn = this.#opened?.netns.isAtLock === true && !isPoolFull();
    this.#lockedReason = stage === "late" ? lockedReason(isOwn) : undefined;
    this.#parts.onLocked?.(this.claim.containerId, { isWaiting: stage === "late", isOwn, waitedMs });
    if (this.#isClosing) return;
    if (this.#lockedReason === undefined) this.#parts.onForeignChange();
    else if (this.#state.kind !== "attached") this.#become(lockedState(this.#lockedReason, this.#hold.staysClosed));
  }

  #become(state: AttachmentState): void {
    this.#state = state;
    this.#parts.onState();
  }
}

/**
 * Reports changes of others to the rules of the thread's namespace.
 *
 * `ownPorts`: netlink ports under which the kernel reports our own changes.
 */
function watchRules(
  ownPorts: ReadonlySet<number>,
  { onForeignChange }: Pick<AttachmentParts, "onForeignChange">,
  onChange: () => void,
): NftWatch {
  return new NftWatch(ownPorts, () => {
    onChange();
    onForeignChange();
  });
}
