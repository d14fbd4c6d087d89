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
 * affects only our own probes, never a client's query.
 */
import { LIMITS } from "../../base/limits.ts";
import { NftWatch } from "../../kernel/nft-watch.ts";
import { closeQuietly } from "../../kernel/libc.ts";
import { Fault, isInternalError, reasonWithRemedy } from "../../base/lib/fault.ts";
import { guard } from "../../base/lib/guard.ts";
import { ownRound } from "../../base/lib/own-round.ts";
import type { AnsweredByReport } from "../../base/model/answered-by.ts";
import type { FailureCode } from "../../base/model/not-served.ts";
import type { View } from "../../base/model/view.ts";
import { DOCKER_RESOLVER, capturedInside, protocolsOf } from "../capture/capture.ts";
import type { NamespaceId } from "../namespace/namespace-runner.ts";
import type { NamespaceClaim, ProvenNamespace } from "../namespace/proof.ts";
import { type NamespaceSockets, closeSockets, pairsFor } from "../namespace/sockets.ts";
import { culpritsIn } from "../rules/culprit.ts";
import { type ListenAddress, drainingPlan, servingPlan, trialPlan } from "../rules/plan.ts";
import { type ProbeRequest, type ProbeResult, probe } from "../rules/probe.ts";
import type { AttachMode } from "./attach-mode.ts";
import { answeredBy, closeKernelTier } from "./kernel-tier.ts";
import { KernelCheck, adaptKernel } from "./kernel-check.ts";
import { closeLater, openServing, reinstall, removeRules } from "./open-serving.ts";
import { type AttachmentParts, MORE_DESCRIPTORS } from "./attachment-parts.ts";
import type { Endpoint } from "./endpoint.ts";
import { type Serving, heldOf, listenAddressesOf, planInputOf, servedNamespaceOf } from "./serving.ts";
import { type AttachmentState, failureCode } from "./attachment-state.ts";
import { untilQuiet } from "./until-quiet.ts";

export class Attachment {
  readonly claim: NamespaceClaim;
  readonly mode: AttachMode;
  readonly #parts: AttachmentParts;
  #view: View;
  #state: AttachmentState = { kind: "opening" };
  #namespace: { readonly fd: number; readonly id: NamespaceId } | undefined;
  #watch: NftWatch | undefined;
  #serving: Serving | undefined;
  /** Of the namespace as it is served now. */
  #kernel: KernelCheck | undefined;
  #isVerifying = false;
  #isDraining = false;
  #repairs = 0;
  /** Netlink ports under which the kernel reports our own changes, including those of a socket that is closing. */
  readonly #ownPorts = new Set<number>();
  /** Client ports of TCP connections to Docker's resolver that were open when we attached. */
  #spared: readonly number[] = [];

  constructor(claim: NamespaceClaim, mode: AttachMode, view: View, parts: AttachmentParts) {
    this.claim = claim;
    this.mode = mode;
    this.#view = view;
    this.#parts = parts;
  }

  get state(): AttachmentState {
    return this.#state;
  }

  get namespaceId(): NamespaceId | undefined {
    return this.#namespace?.id;
  }

  get listening(): readonly ListenAddress[] {
    return listenAddressesOf(this.#serving?.pairs ?? []);
  }

  get counters(): Readonly<Record<string, number>> | undefined {
    return this.#serving?.endpoint.counters;
  }

  /** The endpoint that serves the namespace now. */
  get endpoint(): Endpoint | undefined {
    return this.#serving?.endpoint;
  }

  /** Undefined where nothing else than the process is wanted. */
  get answeredBy(): AnsweredByReport | undefined {
    return this.#serving && answeredBy(this.#serving.kernel);
  }

  /** How often re-creating flushed rules made queries arrive again. */
  get repairs(): number {
    return this.#repairs;
  }

  setView(view: View): void {
    this.#view = view;
    this.#serving?.endpoint.setView(view);
  }

  /**
   * Enters the namespace, creates sockets and rules, and starts serving. One synchronous step: all of it or nothing.
   */
  open(): void {
    if (this.#state.kind === "closed" || this.#serving !== undefined) return;
    try {
      this.#namespace ??= this.#openNamespace();
      this.#serving = this.#startServing(this.#namespace);
      // After a failure the state stays "failed" until a probe succeeds.
      if (this.#state.kind === "opening") this.#become({ kind: "verifying", sinceMs: Date.now() });
    } catch (error) {
      this.#failWith(error, "ATTACH_FAILED");
    }
  }

  /** Whether rules are installed and can be verified. */
  get isOpen(): boolean {
    return this.#serving !== undefined;
  }

  /**
   * Sends a nonce query through the rules. One failure on trial, or two in a row while serving, hands back to Docker.
   */
  async verify(): Promise<void> {
    const serving = this.#serving;
    const { kernel } = this;
    const namespace = this.#namespace;
    if (serving === undefined || kernel === undefined || namespace === undefined) return;
    if (this.#isVerifying || this.#isDraining) return;
    this.#isVerifying = true;
    try {
      let result = await this.#probe(serving, namespace.fd);
      if (result.kind === "works" && serving.isTrial && this.#serving === serving && !this.#isDraining) {
        serving.rules.replaceRules(servingPlan(planInputOf(serving, this.#spared)));
        serving.isTrial = false;
        this.#markVerified();
        // Probe again without the trial mark: foreign rules that match marks may treat clients' queries differently.
        result = await this.#probe(serving, namespace.fd);
      }
      result = await kernel.settle(result);
      if (result.kind === "broken" && !serving.isTrial && this.#serving === serving && !this.#isDraining) {
        const wereReinstalled = reinstall(serving, namespace.fd, this.#spared, this.#parts);
        result = await this.#probe(serving, namespace.fd);
        if (wereReinstalled && result.kind === "works") this.#repairs++;
      }
      // A draining namespace receives no new queries, so a probe must fail.
      if (this.#serving !== serving || this.#isDraining) return;
      if (result.kind === "works") await this.#completeVerification(serving, namespace.fd);
      else if (result.kind === "unknown") this.#postpone();
      else await this.#handBack(serving, namespace.fd, result.failures);
    } catch (error) {
      if (this.#serving === serving) this.#failWith(error, "PROBE_FAILED");
    } finally {
      this.#isVerifying = false;
    }
  }

  /** Undefined while it does not serve. */
  get kernel(): KernelCheck | undefined {
    return this.#serving && this.#kernel;
  }

  /** The captured addresses may have changed: binds what is missing and re-creates the rules in one step. */
  updateCapture(): void {
    const [serving, namespace] = [this.#serving, this.#namespace];
    if (serving === undefined || namespace === undefined || this.#isDraining) return;
    try {
      const { added, ...changed } = this.#parts.runner.within(namespace.fd, () => this.#updateRules(serving));
      serving.endpoint.add(added);
      Object.assign(serving, changed, { bound: [...serving.bound, ...added] });
      this.#renewHold(serving);
    } catch (error) {
      this.#failWith(error, "REFIT_FAILED");
    }
  }

  #updateRules(serving: Serving): Pick<Serving, "capture" | "pairs"> & { added: readonly NamespaceSockets[] } {
    const capture = this.mode.capture();
    adaptKernel(serving, capture, this.#parts);
    const { pairs, added } = pairsFor(capture.redirects, serving.bound);
    try {
      const input = planInputOf({ ...serving, capture, pairs }, this.#spared);
      serving.rules.replaceTables(serving.isTrial ? trialPlan(input) : servingPlan(input));
      return { capture, pairs, added };
    } catch (error) {
      closeSockets(added);
      throw error;
    }
  }

  /** Sends new queries to Docker's resolver from now on; queries in flight are still answered. */
  async drain(): Promise<void> {
    const serving = this.#serving;
    if (serving === undefined) return;
    this.#isDraining = true;
    this.#withdraw();
    const { endpoint, rules } = serving;
    rules.replaceRules(drainingPlan(planInputOf(serving, this.#spared), endpoint.tcpClientPorts));
    await untilQuiet(endpoint);
    const { fd } = this.#namespace ?? {};
    if (fd !== undefined) await this.mode.undoInSlices?.((work) => this.#parts.runner.within(fd, work));
  }

  /** Accepts no new queries and touches no rule: the next process is about to take over the same sockets. */
  pause(): void {
    this.#isDraining = true;
    const serving = this.#serving;
    if (serving === undefined) return;
    const { bound, pairs } = serving;
    const descriptors = serving.endpoint.pause();
    serving.bound = bound.map((pair, index) => ({ ...pair, ...descriptors[index] }));
    serving.pairs = pairs.map((pair) => serving.bound[bound.indexOf(pair)] as NamespaceSockets);
    this.#renewHold(serving);
  }

  /** Continues after a takeover that failed. */
  resume(): void {
    this.#isDraining = false;
    this.#serving?.endpoint.resume();
    this.#serving?.kernel.space?.takePlace();
    this.updateCapture();
  }

  /** Lets go after a takeover: another process serves the namespace, so rules and sockets stay. */
  abandon(): void {
    const serving = this.#serving;
    this.#serving = undefined;
    if (serving !== undefined) {
      serving.isEnded = true;
      serving.endpoint.close();
      serving.rules.close();
      closeKernelTier(serving.kernel);
    }
    this.close();
  }

  /** Stops serving at once and removes everything. */
  close(): void {
    if (this.#state.kind === "closed") return;
    this.#stopServing();
    const watch = this.#watch;
    closeLater(() => watch?.close());
    if (this.#namespace !== undefined) closeQuietly(this.#namespace.fd);
    this.#namespace = undefined;
    this.#become({ kind: "closed" });
  }

  async #probe(
    { endpoint: { probeTarget }, isTrial, capture }: Serving,
    from: number,
    request: Partial<ProbeRequest> = {},
  ): Promise<ProbeResult> {
    const within = <T>(work: () => T): T => this.#parts.runner.within(from, work);
    const destination = capturedInside(capture)[0] ?? DOCKER_RESOLVER;
    return await probe(within, probeTarget, { destination, protocols: protocolsOf(capture), isTrial, ...request });
  }

  #startServing(namespace: { readonly fd: number; readonly id: NamespaceId }): Serving {
    const { serving, spared } = openServing(namespace, {
      containerId: this.claim.containerId,
      mode: this.mode,
      view: this.#view,
      parts: this.#parts,
      isTrial: this.#state.kind === "failed",
      ownPorts: this.#ownPorts,
      watchRules: () => void (this.#watch ??= this.#watchRules()),
    });
    this.#spared = spared;
    this.#kernel = new KernelCheck(serving, {
      ...this.#parts,
      fd: namespace.fd,
      spared: () => this.#spared,
      within: (work) => this.#parts.runner.within(namespace.fd, work),
      isCurrent: () => this.#serving === serving && !this.#isDraining,
      probe: async (protocols) => await this.#probe(serving, namespace.fd, { protocols }),
      onChange: () => this.#renewHold(serving),
    });
    const held = heldOf(namespace.id, serving, spared);
    if (held !== undefined) serving.hold = this.#parts.keep?.(held);
    return serving;
  }

  /** Without nf_tables the kernel reports no changes; the verification timer is shorter then. */
  #watchRules(): NftWatch | undefined {
    try {
      return new NftWatch(this.#ownPorts, () => {
        this.#serving?.kernel.retry.hurry();
        this.#parts.onForeignChange();
      });
    } catch (error) {
      if (this.#parts.ruleBackend.backend === "iptables-legacy") return undefined;
      throw error;
    }
  }

  /** The kernel assigns the lowest free descriptor number, so a high number means that few are left. */
  #openNamespace(): ProvenNamespace {
    const proven = this.#parts.prove(this.claim);
    const { descriptorsMax } = this.#parts;
    if (proven.fd < descriptorsMax - LIMITS.descriptorsReserved) return proven;
    closeQuietly(proven.fd);
    throw new Fault("EMFILE", `Almost all of the ${descriptorsMax} file descriptors are in use`, {
      remedy: MORE_DESCRIPTORS,
    });
  }

  #markVerified(): void {
    this.#stopSparing();
    const sinceMs = this.#state.kind === "attached" ? this.#state.sinceMs : Date.now();
    this.#become({ kind: "attached", sinceMs, verifiedMs: Date.now() });
  }

  /** Runs the mode's own checks before the namespace counts as verified. */
  async #completeVerification(serving: Serving, fd: number): Promise<void> {
    const namespace = servedNamespaceOf(serving, {
      fd,
      runner: this.#parts.runner,
      probe: async (destination, from) =>
        await this.#probe(serving, from?.fd ?? fd, { destination, sourcePort: from?.sourcePort }),
    });
    await this.mode.onVerified(namespace);
    if (this.#serving === serving && !this.#isDraining) this.#markVerified();
  }

  /** By the first routine verification the connections that were open when we attached have ended. */
  #stopSparing(): void {
    const serving = this.#serving;
    if (this.#state.kind !== "attached" || this.#spared.length === 0 || serving === undefined) return;
    if (Date.now() - this.#state.sinceMs < LIMITS.verifyEveryMs / 2) return;
    this.#spared = [];
    serving.rules.replaceRules(servingPlan(planInputOf(serving, this.#spared)));
  }

  /** An attached namespace keeps serving and is probed again later; one that is not attached yet is retried later. */
  #postpone(): void {
    const reason = "cannot send a probe: dns11 is out of file descriptors or memory";
    if (this.#state.kind !== "attached") this.#fail("PROBE_FAILED" satisfies FailureCode, reason, []);
  }

  /** The removal of our rules gets a round of its own, after the search. */
  async #handBack(serving: Serving, fd: number, failures: readonly string[]): Promise<void> {
    const culprits = culpritsIn((work) => this.#parts.runner.within(fd, work), this.#parts.memory);
    await ownRound();
    if (this.#serving !== serving || this.#isDraining) return;
    this.#fail("UNVERIFIED" satisfies FailureCode, `queries do not reach dns11: ${failures.join("; ")}`, culprits);
  }

  #failWith(error: unknown, fallback: FailureCode): void {
    if (isInternalError(error)) guard.report(error, "attach");
    this.#fail(failureCode(error, fallback), reasonWithRemedy(error), []);
  }

  #fail(code: string, reason: string, culprits: readonly string[]): void {
    this.#stopServing();
    this.#become({ kind: "failed", code, reason, culprits, atMs: Date.now() });
  }

  #stopServing(): void {
    const serving = this.#serving;
    if (serving === undefined) return;
    this.#serving = undefined;
    serving.isEnded = true;
    this.#withdraw();
    // The rules first, so that nothing is redirected to sockets that are about to close.
    removeRules(serving.rules, this.#ownPorts);
    serving.endpoint.close();
    serving.hold?.release();
    this.#parts.onServing?.(this.claim.containerId, serving.endpoint.counters, false);
    closeKernelTier(serving.kernel);
    if (this.#namespace !== undefined) this.#parts.runner.within(this.#namespace.fd, () => this.mode.undo());
  }

  #withdraw(): void {
    const fd = this.#namespace?.fd;
    if (fd !== undefined) this.mode.withdraw((work) => this.#parts.runner.within(fd, work));
  }

  #renewHold(serving: Serving): void {
    const held = this.#namespace && heldOf(this.#namespace.id, serving, this.#spared);
    if (held !== undefined) serving.hold?.update(held);
  }

  #become(state: AttachmentState): void {
    this.#state = state;
    this.#parts.onState();
  }
}
