/**
 * Opening: into a namespace, sockets and rules made, and the endpoint that serves from them; or the same with what another
 * process served by until now, which loses no query on the way. One synchronous step: it holds whole, or nothing is left.
 */
import { LIMITS } from "../../base/limits.ts";
import { Fault } from "../../base/lib/fault.ts";
import type { HeldNamespace } from "../../base/model/held-namespace.ts";
import type { View } from "../../base/model/view.ts";
import { DOCKER_RESOLVER } from "../capture/capture.ts";
import type { NamespaceId } from "../namespace/bracket.ts";
import { conversationsWith } from "../namespace/conversations.ts";
import { dialIn } from "../namespace/dial.ts";
import { type NamespaceSockets, bindSockets, closeSockets, pairsFor } from "../namespace/sockets.ts";
import { inheritRuleSet, openRuleSet } from "../rules/open-rule-set.ts";
import { servingPlan, trialPlan } from "../rules/plan.ts";
import type { RuleSet } from "../rules/rule-set.ts";
import { refuseServed } from "../rules/standing.ts";
import type { Mode } from "./mode.ts";
import type { AttachmentParts } from "./parts.ts";
import { type Serving, planInputOf } from "./serving.ts";

/** Who opens. */
interface Opener {
  readonly containerId: string;
  readonly mode: Mode;
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
interface Made extends Pick<Serving, "capture" | "pairs" | "bound" | "keeper" | "zone"> {
  readonly spared: readonly number[];
}

export function openServing(
  namespace: { readonly fd: number; readonly id: NamespaceId },
  opener: Opener,
): { readonly serving: Serving; readonly spared: readonly number[] } {
  const { parts, containerId, view, isTrial } = opener;
  const { bracket, host, openEndpoint } = parts;
  const left = parts.heir?.(namespace.id);
  const { spared, ...made } =
    left === undefined ? makeAnew(namespace.fd, opener) : takeOver(namespace.fd, left, opener);
  try {
    const lifetime = { isOver: false };
    const endpoint = openEndpoint(made.bound, view, (server, type) => {
      if (lifetime.isOver) throw new Fault("ENDED", "The namespace is not served any more");
      return dialIn(bracket, server.from === "host" ? host().network : namespace.fd, server, type);
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
    takeBack(namespace.fd, opener, made.keeper, made.bound);
    throw error;
  }
}

function makeAnew(fd: number, opener: Opener): Made {
  const { parts, mode, isTrial, ownPorts, watchRules } = opener;
  const { bracket, memory, means } = parts;
  // What connection tracking remembers of the sockets before leads to ports that nobody has any more.
  const zone = parts.nextZone();
  let sockets: readonly NamespaceSockets[] = [];
  let keeper: RuleSet | undefined;
  let isTouched = false;
  try {
    return bracket.within(fd, () => {
      const standing = refuseServed(memory);
      isTouched = true;
      // First, so that its number is the lowest: the kernel closes a dead process's descriptors in their order, and the
      // rules must be gone before the sockets that they lead to.
      keeper = openRuleSet(means, memory, fd);
      if (keeper.port !== undefined) ownPorts.add(keeper.port);
      const capture = mode.capture();
      const spared = conversationsWith(DOCKER_RESOLVER);
      sockets = bindSockets(capture.leads);
      watchRules();
      const input = planInputOf({ capture, pairs: sockets, zone }, spared);
      keeper.install(isTrial ? trialPlan(input) : servingPlan(input), standing);
      return { capture, pairs: sockets, bound: sockets, keeper, zone, spared };
    });
  } catch (error) {
    if (isTouched) takeBack(fd, opener, keeper, sockets);
    throw error;
  }
}

/** The same sockets, rules and zone: whoever waits for an answer in there is given it by us. */
function takeOver(fd: number, left: HeldNamespace, opener: Opener): Made {
  const { parts, mode, ownPorts, watchRules } = opener;
  const { bracket, memory, means } = parts;
  const keeper = inheritRuleSet(means, memory, left);
  if (keeper.port !== undefined) ownPorts.add(keeper.port);
  let bound: readonly NamespaceSockets[] = left.pairs;
  try {
    return bracket.within(fd, () => {
      const capture = mode.capture();
      const { pairs, added } = pairsFor(capture.leads, left.pairs);
      bound = [...left.pairs, ...added];
      watchRules();
      const { zone, spared } = left;
      keeper.exchange(servingPlan(planInputOf({ capture, pairs, zone }, spared)));
      return { capture, pairs, bound, keeper, zone, spared };
    });
  } catch (error) {
    takeBack(fd, opener, keeper, bound);
    throw error;
  }
}

function takeBack(
  fd: number,
  { parts, mode, ownPorts }: Opener,
  keeper: RuleSet | undefined,
  sockets: readonly NamespaceSockets[],
): void {
  if (keeper !== undefined) removeRules(keeper, ownPorts);
  closeSockets(sockets);
  parts.bracket.within(fd, () => mode.undo());
}

/** Takes the rules away; the socket that owned them follows when that costs nothing any more. */
export function removeRules(keeper: RuleSet, ownPorts: Set<number>): void {
  keeper.remove();
  linger(() => {
    keeper.close();
    if (keeper.port !== undefined) ownPorts.delete(keeper.port);
  });
}

export function linger(close: () => void): void {
  setTimeout(close, LIMITS.nftLingerMs).unref();
}
