/**
 * Opening: into a namespace, sockets and rules made, and the endpoint that serves from them; or the same with what another
 * process served by until now, which loses no query on the way. One synchronous step: it holds whole, or nothing is left.
 */
import { LIMITS } from "../../base/limits.ts";
import { Fault } from "../../base/lib/fault.ts";
import type { HeldNamespace } from "../../base/model/held-namespace.ts";
import type { View } from "../../base/model/view.ts";
import { DOCKER_RESOLVER } from "../capture/capture.ts";
import type { NamespaceId } from "../namespace/namespace-runner.ts";
import { tcpClientPortsOf } from "../namespace/tcp-clients.ts";
import { dialIn } from "../namespace/dial.ts";
import { type NamespaceSockets, bindSockets, closeSockets, pairsFor } from "../namespace/sockets.ts";
import { inheritRuleSet, openRuleSet } from "../rules/open-rule-set.ts";
import { servingPlan, trialPlan } from "../rules/plan.ts";
import type { RuleSet } from "../rules/rule-set.ts";
import { requireUnserved } from "../rules/installed-rules.ts";
import type { AttachMode } from "./attach-mode.ts";
import type { AttachmentParts } from "./attachment-parts.ts";
import { type Serving, planInputOf } from "./serving.ts";

/** Who opens. */
interface OpenRequest {
  readonly containerId: string;
  readonly mode: AttachMode;
  readonly view: View;
  readonly parts: AttachmentParts;
  /** Only probes are to be led to us. */
  readonly isTrial: boolean;
  /** Under these the kernel tells of changes of ours. */
  readonly ownPorts: Set<number>;
  /** Inside the namespace, before there are rules of ours. */
  readonly watchRules: () => void;
}

/** What a step has made so far: all that has to be taken back if the next one fails. */
interface OpenedParts extends Pick<Serving, "capture" | "pairs" | "bound" | "rules" | "zone"> {
  readonly spared: readonly number[];
}

export function openServing(
  namespace: { readonly fd: number; readonly id: NamespaceId },
  opener: OpenRequest,
): { readonly serving: Serving; readonly spared: readonly number[] } {
  const { parts, containerId, view, isTrial } = opener;
  const { runner, host, openEndpoint } = parts;
  const left = parts.inherit?.(namespace.id);
  const { spared, ...made } =
    left === undefined ? openFresh(namespace.fd, opener) : takeOver(namespace.fd, left, opener);
  try {
    const lifetime = { isEnded: false };
    const endpoint = openEndpoint(made.bound, view, (server, type) => {
      if (lifetime.isEnded) throw new Fault("ENDED", "The namespace is not served any more");
      return dialIn(runner, server.from === "host" ? host().network : namespace.fd, server, type);
    });
    parts.onServing?.(containerId, endpoint.counters, true);
    const serving: Serving = Object.assign(lifetime, {
      ...made,
      endpoint,
      isTrial: isTrial && left === undefined,
      hold: undefined,
    });
    return { serving, spared };
  } catch (error) {
    rollBack(namespace.fd, opener, made.rules, made.bound);
    throw error;
  }
}

function openFresh(fd: number, opener: OpenRequest): OpenedParts {
  const { parts, mode, isTrial, ownPorts, watchRules } = opener;
  const { runner, memory, ruleBackend: means } = parts;
  // What connection tracking remembers of the sockets before leads to ports that nobody has any more.
  const zone = parts.nextZone();
  let sockets: readonly NamespaceSockets[] = [];
  let rules: RuleSet | undefined;
  let isTouched = false;
  try {
    return runner.within(fd, () => {
      const standing = requireUnserved(memory);
      isTouched = true;
      // First, so that its number is the lowest: the kernel closes a dead process's descriptors in their order, and the
      // rules must be gone before the sockets that they lead to.
      rules = openRuleSet(means, memory, fd);
      if (rules.netlinkPort !== undefined) ownPorts.add(rules.netlinkPort);
      const capture = mode.capture();
      const spared = tcpClientPortsOf(DOCKER_RESOLVER);
      sockets = bindSockets(capture.redirects);
      watchRules();
      const input = planInputOf({ capture, pairs: sockets, zone }, spared);
      rules.install(isTrial ? trialPlan(input) : servingPlan(input), standing);
      return { capture, pairs: sockets, bound: sockets, rules, zone, spared };
    });
  } catch (error) {
    if (isTouched) rollBack(fd, opener, rules, sockets);
    throw error;
  }
}

/** The same sockets, rules and zone: whoever waits for an answer in there is given it by us. */
function takeOver(fd: number, left: HeldNamespace, opener: OpenRequest): OpenedParts {
  const { parts, mode, ownPorts, watchRules } = opener;
  const { runner, memory, ruleBackend: means } = parts;
  const rules = inheritRuleSet(means, memory, left);
  if (rules.netlinkPort !== undefined) ownPorts.add(rules.netlinkPort);
  let bound: readonly NamespaceSockets[] = left.pairs;
  try {
    return runner.within(fd, () => {
      const capture = mode.capture();
      const { pairs, added } = pairsFor(capture.redirects, left.pairs);
      bound = [...left.pairs, ...added];
      watchRules();
      const { zone, spared } = left;
      rules.replaceTables(servingPlan(planInputOf({ capture, pairs, zone }, spared)));
      return { capture, pairs, bound, rules, zone, spared };
    });
  } catch (error) {
    rollBack(fd, opener, rules, bound);
    throw error;
  }
}

function rollBack(
  fd: number,
  { parts, mode, ownPorts }: OpenRequest,
  rules: RuleSet | undefined,
  sockets: readonly NamespaceSockets[],
): void {
  if (rules !== undefined) removeRules(rules, ownPorts);
  closeSockets(sockets);
  parts.runner.within(fd, () => mode.undo());
}

/** Takes the rules away; the socket that owned them follows when that costs nothing any more. */
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
