/**
 * Attachment: dns11 in one namespace, from the first look to the last.
 *
 *   opening --(sockets, rules)--> verifying --(the probe came through)--> attached
 *      |                             |                                       |  foreign rules changed, or time passed:
 *      | a step failed               | it did not, twice                     |  probe again, serving meanwhile
 *      v                             v                                       v
 *    failed <-------------------- handed back to Docker's resolver <--- it did not, twice
 *      |  after a while, or when foreign rules change
 *      +--> on trial, still called failed: rules that lead only probes to us --(one came through; rules for all)--> attached
 *
 *   any state --(not wanted any more)--> draining --> closed
 *
 * Whatever fails, the namespace is left as it was found, with Docker's own resolver answering; and as long as it would
 * fail again, trying again touches nobody's queries but our own.
 */
import { setImmediate as nextRound, setTimeout as sleep } from "node:timers/promises";

import { LIMITS } from "../../base/limits.ts";
import { NftWatch } from "../../kernel/nft-watch.ts";
import { SystemFault, closeQuietly } from "../../kernel/libc.ts";
import { Fault, codeOf, isInternalError, reasonOf } from "../../base/lib/fault.ts";
import { guard } from "../../base/lib/guard.ts";
import type { FailureCode } from "../../base/model/not-served.ts";
import type { View } from "../../base/model/view.ts";
import { DOCKER_RESOLVER } from "../capture/capture.ts";
import type { NamespaceId } from "../namespace/namespace-runner.ts";
import type { NamespaceClaim, ProvenNamespace } from "../namespace/proof.ts";
import { type NamespaceSockets, closeSockets, pairsFor } from "../namespace/sockets.ts";
import { findCulprits } from "../rules/culprit.ts";
import { type ListenAddress, drainingPlan, servingPlan, trialPlan } from "../rules/plan.ts";
import { type ProbeResult, probe } from "../rules/probe.ts";
import { installedRules } from "../rules/installed-rules.ts";
import type { AttachMode } from "./attach-mode.ts";
import { closeLater, openServing, removeRules } from "./open-serving.ts";
import { type AttachmentParts, MORE_DESCRIPTORS } from "./attachment-parts.ts";
import type { Endpoint } from "./endpoint.ts";
import { type Serving, heldOf, listeningOf, planInputOf, servedNamespaceOf } from "./serving.ts";
import type { AttachmentState } from "./attachment-state.ts";

export class Attachment {
  readonly claim: NamespaceClaim;
  readonly mode: AttachMode;
  readonly #parts: AttachmentParts;
  #view: View;
  #state: AttachmentState = { kind: "opening" };
  #namespace: { readonly fd: number; readonly id: NamespaceId } | undefined;
  #watch: NftWatch | undefined;
  #serving: Serving | undefined;
  #isVerifying = false;
  #isDraining = false;
  #repairs = 0;
  /** Under these the kernel tells of changes of ours, also of those of a socket that is on its way out. */
  readonly #ownPorts = new Set<number>();
  /** TCP conversations with Docker's resolver that were under way when we came. */
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
    return listeningOf(this.#serving?.pairs ?? []);
  }

  get counters(): Readonly<Record<string, number>> | undefined {
    return this.#serving?.endpoint.counters;
  }

  /** What serves the namespace now, as whoever opened it knows it. */
  get endpoint(): Endpoint | undefined {
    return this.#serving?.endpoint;
  }

  get inFlight(): number {
    return this.#serving?.endpoint.inFlight ?? 0;
  }

  /** How often queries came through again because its rules, which somebody had taken away, were made anew. */
  get repairs(): number {
    return this.#repairs;
  }

  setView(view: View): void {
    this.#view = view;
    this.#serving?.endpoint.setView(view);
  }

  /** Goes in, makes sockets and rules, and begins to serve. One synchronous step: it holds whole, or nothing is left. */
  open(): void {
    if (this.#state.kind === "closed" || this.#serving !== undefined) return;
    try {
      this.#namespace ??= this.#proven();
      this.#serving = this.#begin(this.#namespace);
      // One that failed before is called so until a probe has come through.
      if (this.#state.kind === "opening") this.#become({ kind: "verifying", sinceMs: Date.now() });
    } catch (error) {
      this.#failBy(error, "ATTACH_FAILED");
    }
  }

  /** Whether there are rules to be verified. */
  get isOpen(): boolean {
    return this.#serving !== undefined;
  }

  /** Sends a nonce query through the rules. One that fails on trial, or two in a row while serving, hand back. */
  async verify(): Promise<void> {
    const serving = this.#serving;
    const namespace = this.#namespace;
    if (serving === undefined || namespace === undefined || this.#isVerifying || this.#isDraining) return;
    this.#isVerifying = true;
    try {
      let result = await this.#probe(serving, namespace.fd);
      if (result.kind === "works" && serving.isTrial && this.#serving === serving && !this.#isDraining) {
        serving.rules.replaceRules(servingPlan(planInputOf(serving, this.#spared)));
        serving.isTrial = false;
        this.#verified();
        // Once more as everybody's queries go, which foreign rules about marks may tell from the trial's.
        result = await this.#probe(serving, namespace.fd);
      }
      if (result.kind === "broken" && !serving.isTrial && this.#serving === serving && !this.#isDraining) {
        const areRulesAnew = this.#repair(serving, namespace.fd);
        result = await this.#probe(serving, namespace.fd);
        if (areRulesAnew && result.kind === "works") this.#repairs++;
      }
      // While it drains nothing new comes through, and must not.
      if (this.#serving !== serving || this.#isDraining) return;
      if (result.kind === "works") await this.#verifiedWhole(serving, namespace.fd);
      else if (result.kind === "unknown") this.#postpone();
      else this.#handBack(namespace.fd, result.failures);
    } catch (error) {
      if (this.#serving === serving) this.#failBy(error, "PROBE_FAILED");
    } finally {
      this.#isVerifying = false;
    }
  }

  /** Other addresses may be ours now: what is missing is bound, and the rules are made anew, in one step. */
  updateCapture(): void {
    const serving = this.#serving;
    const namespace = this.#namespace;
    if (serving === undefined || namespace === undefined || this.#isDraining) return;
    try {
      const { capture, pairs, added } = this.#parts.runner.within(namespace.fd, () => this.#exchange(serving));
      serving.endpoint.add(added);
      Object.assign(serving, { capture, pairs, bound: [...serving.bound, ...added] });
      this.#renewHold(serving);
    } catch (error) {
      this.#failBy(error, "REFIT_FAILED");
    }
  }

  #exchange({ bound, rules: keeper, zone, isTrial }: Serving): Pick<Serving, "capture" | "pairs"> & {
    readonly added: readonly NamespaceSockets[];
  } {
    const capture = this.mode.capture();
    const { pairs, added } = pairsFor(capture.redirects, bound);
    try {
      const input = planInputOf({ capture, pairs, zone }, this.#spared);
      keeper.replaceTables(isTrial ? trialPlan(input) : servingPlan(input));
      return { capture, pairs, added };
    } catch (error) {
      closeSockets(added);
      throw error;
    }
  }

  /** New queries go to Docker's resolver from here on; those that are being answered still are. */
  async drain(): Promise<void> {
    const serving = this.#serving;
    if (serving === undefined) return;
    this.#isDraining = true;
    this.#withdraw();
    const { endpoint, rules: keeper } = serving;
    keeper.replaceRules(drainingPlan(planInputOf(serving, this.#spared), endpoint.tcpClientPorts));
    const deadlineMs = performance.now() + LIMITS.drainMs;
    // What had arrived before the rules changed still waits in the socket: leave only when nothing came for a while.
    let before;
    do {
      before = endpoint.counters["queries"];
      await sleep(LIMITS.drainQuietMs);
      // Timers come before sockets: where others' rules took the time, nobody has looked into ours yet.
      await nextRound();
    } while (
      (endpoint.counters["queries"] !== before || endpoint.inFlight > 0 || endpoint.tcpClientPorts.length > 0) &&
      performance.now() < deadlineMs
    );
  }

  /** Serves nobody anew and touches no rule: somebody else is about to go on by the same sockets. */
  pause(): void {
    this.#isDraining = true;
    const serving = this.#serving;
    if (serving === undefined) return;
    const { bound, pairs } = serving;
    const numbers = serving.endpoint.pause();
    serving.bound = bound.map((pair, index) => ({ ...pair, ...numbers[index] }));
    serving.pairs = pairs.map((pair) => serving.bound[bound.indexOf(pair)] as NamespaceSockets);
    this.#renewHold(serving);
  }

  /** Nobody did. */
  resume(): void {
    this.#isDraining = false;
    this.#serving?.endpoint.resume();
    this.updateCapture();
  }

  /** Somebody else serves the namespace by now: everything stays as it is, and only we go. */
  abandon(): void {
    const serving = this.#serving;
    this.#serving = undefined;
    if (serving !== undefined) {
      serving.isEnded = true;
      serving.endpoint.close();
      serving.rules.close();
    }
    this.close();
  }

  /** Leaves, at once and without a trace. */
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
    { endpoint, isTrial }: Serving,
    from: number,
    destination = DOCKER_RESOLVER,
    sourcePort?: number,
  ): Promise<ProbeResult> {
    const within = <T>(work: () => T): T => this.#parts.runner.within(from, work);
    return await probe(within, destination, endpoint.probeTarget, isTrial, sourcePort);
  }

  #begin(namespace: { readonly fd: number; readonly id: NamespaceId }): Serving {
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
    const held = heldOf(namespace.id, serving, spared);
    if (held !== undefined) serving.hold = this.#parts.keep?.(held);
    return serving;
  }

  /** Where there is no nf_tables, there is nobody who tells; the timer looks more often then. */
  #watchRules(): NftWatch | undefined {
    try {
      return new NftWatch(this.#ownPorts, () => this.#parts.onForeignChange());
    } catch (error) {
      if (this.#parts.ruleBackend.backend === "iptables-legacy") return undefined;
      throw error;
    }
  }

  /** The kernel gives the lowest number that is free: a high one says how many are taken. */
  #proven(): ProvenNamespace {
    const proven = this.#parts.prove(this.claim);
    const { descriptorsMax } = this.#parts;
    if (proven.fd < descriptorsMax - LIMITS.descriptorsReserved) return proven;
    closeQuietly(proven.fd);
    throw new Fault("EMFILE", `All but a few of the ${descriptorsMax} descriptors are taken`, {
      remedy: MORE_DESCRIPTORS,
    });
  }

  /** Where nobody owns our rules, somebody else may have flushed them: they are made anew, in the same step as any other. */
  #repair(serving: Serving, fd: number): boolean {
    const { runner, memory, ruleBackend: means } = this.#parts;
    if (means.backend === "nft-owner") return false;
    const plans = servingPlan(planInputOf(serving, this.#spared));
    runner.within(fd, () => serving.rules.install(plans, installedRules(memory)));
    return true;
  }

  #verified(): void {
    this.#forgetSpared();
    const sinceMs = this.#state.kind === "attached" ? this.#state.sinceMs : Date.now();
    this.#become({ kind: "attached", sinceMs, verifiedMs: Date.now() });
  }

  /** What the mode needs is seen to before it is said that all is well. */
  async #verifiedWhole(serving: Serving, fd: number): Promise<void> {
    const site = servedNamespaceOf(serving, {
      fd,
      runner: this.#parts.runner,
      probe: async (destination, from) => await this.#probe(serving, from?.fd ?? fd, destination, from?.sourcePort),
    });
    await this.mode.onVerified(site);
    if (this.#serving === serving && !this.#isDraining) this.#verified();
  }

  /** Conversations that were under way when we came are over by the first routine verification. */
  #forgetSpared(): void {
    const serving = this.#serving;
    if (this.#state.kind !== "attached" || this.#spared.length === 0 || serving === undefined) return;
    if (Date.now() - this.#state.sinceMs < LIMITS.verifyEveryMs / 2) return;
    this.#spared = [];
    serving.rules.replaceRules(servingPlan(planInputOf(serving, this.#spared)));
  }

  /** What serves goes on serving, and is asked again later; what does not serve yet is tried again later. */
  #postpone(): void {
    if (this.#state.kind !== "attached") {
      this.#fail(
        "PROBE_FAILED" satisfies FailureCode,
        "no probe could be sent: the process is out of descriptors or memory",
        [],
      );
    }
  }

  #handBack(fd: number, failures: readonly string[]): void {
    let culprits: readonly string[];
    try {
      culprits = this.#parts.runner.within(fd, () => findCulprits(this.#parts.memory));
    } catch (error) {
      culprits = [`the rules of the namespace cannot be read: ${reasonOf(error)}`];
    }
    this.#fail("UNVERIFIED" satisfies FailureCode, `queries do not come through: ${failures.join("; ")}`, culprits);
  }

  #failBy(error: unknown, fallback: FailureCode): void {
    if (isInternalError(error)) guard.report(error, "attach");
    this.#fail(failureCode(error, fallback), reasonOf(error), []);
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
    // The rules first: from then on nobody is led to sockets that are going away.
    removeRules(serving.rules, this.#ownPorts);
    serving.endpoint.close();
    serving.hold?.release();
    this.#parts.onServing?.(this.claim.containerId, serving.endpoint.counters, false);
    if (this.#namespace !== undefined) this.#undo(this.#namespace.fd);
  }

  #withdraw(): void {
    const fd = this.#namespace?.fd;
    if (fd !== undefined) this.mode.withdraw((work) => this.#parts.runner.within(fd, work));
  }

  #undo(fd: number): void {
    this.#parts.runner.within(fd, () => this.mode.undo());
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

/** Our own word for what failed; what the kernel calls it stands in the reason. */
function failureCode(error: unknown, otherwise: FailureCode): string {
  if (codeOf(error) === "EMFILE" || codeOf(error) === "ENFILE") return "NO_DESCRIPTORS" satisfies FailureCode;
  return error instanceof Fault && !(error instanceof SystemFault) ? error.code : otherwise;
}
