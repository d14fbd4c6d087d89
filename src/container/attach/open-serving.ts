/**
 * OpenServing: creates sockets, rules and the endpoint of one namespace, or takes over those of the previous process
 * without losing a query. One synchronous step: all of it or nothing.
 */
import { LIMITS } from "../../base/limits.ts";
import { Fault } from "../../base/lib/fault.ts";
import type { HeldNamespace } from "../../base/model/held-namespace.ts";
import type { View } from "../../base/model/view.ts";
import { closeInPool } from "../../kernel/descriptors.ts";
import { capturedInside } from "../capture/capture.ts";
import type { NamespaceId } from "../namespace/namespace-runner.ts";
import { tcpClientPortsOf } from "../namespace/tcp-clients.ts";
import { dialIn } from "../namespace/dial.ts";
import { type NamespaceSockets, bindSockets, closeSockets, pairsFor } from "../namespace/sockets.ts";
import { inheritRuleSet, openRuleSet } from "../rules/open-rule-set.ts";
import { servingPlan, trialPlan } from "../rules/plan.ts";
import type { RuleSet } from "../rules/rule-set.ts";
import { installedRules, requireUnserved } from "../rules/installed-rules.ts";
import type { AttachMode } from "./attach-mode.ts";
import type { AttachmentParts } from "./attachment-parts.ts";
import { type KernelTier, closeKernelTier, newKernelTier } from "./kernel-tier.ts";
import { type Serving, planInputOf } from "./serving.ts";

/** The attachment that opens, and what it needs. */
interface OpenRequest {
  readonly containerId: string;
  readonly mode: AttachMode;
  readonly view: View;
  readonly parts: AttachmentParts;
  /** Redirect only probes. */
  readonly isTrial: boolean;
  /** Netlink ports under which the kernel reports our own changes. */
  readonly ownPorts: Set<number>;
  /** Called inside the namespace, before our rules exist. */
  readonly watchRules: () => void;
}

/** What has been created so far and must be rolled back if a later step fails. */
interface OpenedParts extends Pick<Serving, "capture" | "pairs" | "bound" | "rules" | "zone" | "kernel"> {
  readonly spared: readonly number[];
}

export function openServing(
  namespace: { readonly fd: number; readonly id: NamespaceId },
  request: OpenRequest,
): { readonly serving: Serving; readonly spared: readonly number[] } {
  const { parts, containerId, view, isTrial } = request;
  const { runner, host, openEndpoint } = parts;
  const held = parts.inherit?.(namespace.id);
  const { spared, ...opened } =
    held === undefined ? openFresh(namespace.fd, request) : takeOver(namespace.fd, held, request);
  try {
    const lifetime = { isEnded: false };
    const endpoint = openEndpoint(opened.bound, view, (server, type) => {
      if (lifetime.isEnded) throw new Fault("ENDED", "The namespace is no longer served");
      if (server.from !== "host") return dialIn(runner, namespace.fd, server, type, true);
      return dialIn(runner, host().network, server, type, parts.isHostCaptured?.());
    });
    if (!opened.kernel.isTrial) endpoint.setMemory(opened.kernel.space);
    parts.onServing?.(containerId, endpoint.counters, true);
    const serving: Serving = Object.assign(lifetime, {
      ...opened,
      endpoint,
      isTrial: isTrial && held === undefined,
      hold: undefined,
    });
    return { serving, spared };
  } catch (error) {
    rollBack(namespace.fd, request, opened);
    throw error;
  }
}

function openFresh(fd: number, request: OpenRequest): OpenedParts {
  const { parts, mode, isTrial, ownPorts, watchRules } = request;
  const { runner, memory, ruleBackend } = parts;
  // A new zone, because conntrack entries of earlier sockets point to ports that are closed now.
  const zone = parts.nextZone();
  let sockets: readonly NamespaceSockets[] = [];
  let rules: RuleSet | undefined;
  let kernel: KernelTier | undefined;
  let isTouched = false;
  try {
    return runner.within(fd, () => {
      const orphaned = requireUnserved(memory);
      isTouched = true;
      // First, so that its descriptor number is the lowest: the kernel closes a dead process's descriptors in order,
      // and the rules must be gone before the sockets that they redirect to.
      rules = openRuleSet(ruleBackend, memory, fd);
      if (rules.netlinkPort !== undefined) ownPorts.add(rules.netlinkPort);
      const capture = mode.capture();
      const spared = tcpClientPortsOf(capturedInside(capture));
      sockets = bindSockets(capture.redirects);
      watchRules();
      kernel = newKernelTier(parts, { capture, pairs: sockets, notByKernel: mode.notByKernel });
      const input = planInputOf({ capture, pairs: sockets, zone, kernel }, spared);
      rules.install(isTrial ? trialPlan(input) : servingPlan(input), orphaned);
      return { capture, pairs: sockets, bound: sockets, rules, zone, kernel, spared };
    });
  } catch (error) {
    if (isTouched) rollBack(fd, request, { rules, bound: sockets, kernel });
    throw error;
  }
}

/** Takes over the sockets, rules and zone, so that waiting clients get their answers from us. */
function takeOver(fd: number, held: HeldNamespace, request: OpenRequest): OpenedParts {
  const { parts, mode, ownPorts, watchRules } = request;
  const { runner, memory, ruleBackend } = parts;
  const rules = inheritRuleSet(ruleBackend, memory, held);
  if (rules.netlinkPort !== undefined) ownPorts.add(rules.netlinkPort);
  let bound: readonly NamespaceSockets[] = held.pairs;
  let kernel: KernelTier | undefined;
  try {
    return runner.within(fd, () => {
      const capture = mode.capture();
      const { pairs, added } = pairsFor(capture.redirects, held.pairs);
      bound = [...held.pairs, ...added];
      watchRules();
      const { zone, spared } = held;
      const [link] = held.programs;
      kernel = newKernelTier(parts, { capture, pairs, notByKernel: mode.notByKernel }, link);
      rules.replaceTables(servingPlan(planInputOf({ capture, pairs, zone, kernel }, spared)));
      return { capture, pairs, bound, rules, zone, kernel, spared };
    });
  } catch (error) {
    rollBack(fd, request, { rules, bound, kernel });
    throw error;
  } finally {
    for (const each of held.programs) closeInPool(each);
  }
}

function rollBack(
  fd: number,
  { parts, mode, ownPorts }: OpenRequest,
  {
    rules,
    bound,
    kernel,
  }: Pick<OpenedParts, "bound"> & {
    readonly rules: RuleSet | undefined;
    readonly kernel: KernelTier | undefined;
  },
): void {
  if (rules !== undefined) removeRules(rules, ownPorts);
  if (kernel !== undefined) closeKernelTier(kernel);
  closeSockets(bound);
  parts.runner.within(fd, () => mode.undo());
}

/** Re-creates rules that no process owns, because another program may have flushed them. Returns whether it did. */
export function reinstall(
  serving: Serving,
  fd: number,
  spared: readonly number[],
  { runner, memory, ruleBackend }: AttachmentParts,
): boolean {
  if (ruleBackend.backend === "nft-owner") return false;
  const plans = servingPlan(planInputOf(serving, spared));
  runner.within(fd, () => serving.rules.install(plans, installedRules(memory)));
  return true;
}

/** Removes the rules. The netlink socket that owned them closes later, when that is cheap. */
export function removeRules(rules: RuleSet, ownPorts: Set<number>): void {
  rules.remove();
  closeLater(() => {
    rules.close();
    if (rules.netlinkPort !== undefined) ownPorts.delete(rules.netlinkPort);
  });
}

export function closeLater(close: () => void): void {
  setTimeout(close, LIMITS.nftLingerMs).unref();
}
