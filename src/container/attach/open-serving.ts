/**
 * OpenServing: creates sockets, rules and the endpoint of one namespace, or takes over those of the previous process
 * without losing a query: all of it or nothing. The endpoint listens before the rules are there: they may have to wait for
 * a lock, and those of a previous process lead queries to us already.
 */
import { setImmediate as nextRound } from "node:timers/promises";

import { LIMITS } from "../../base/limits.ts";
import { allDone } from "../../base/lib/async.ts";
import { Fault } from "../../base/lib/fault.ts";
import type { HeldNamespace } from "../../base/model/held-namespace.ts";
import type { View } from "../../base/model/view.ts";
import { closeInPool } from "../../kernel/in-pool.ts";
import { closeQuietly } from "../../kernel/libc.ts";
import { capturedInside } from "../capture/capture.ts";
import type { NamespaceId } from "../namespace/namespace-runner.ts";
import type { NamespaceClaim } from "../namespace/proof.ts";
import { tcpClientPortsOf } from "../namespace/listeners.ts";
import { ownGroup } from "../namespace/control-group.ts";
import { dialIn } from "../namespace/dial.ts";
import type { Passage } from "../namespace/passages.ts";
import { bindSockets, closeSockets, pairsFor } from "../namespace/sockets.ts";
import type { NetNamespace } from "../../kernel/net-namespace.ts";
import { type TablePlan, servingPlan, trialPlan } from "../rules/plan.ts";
import { RuleSet } from "../rules/rule-set.ts";
import { installedRules, requireUnserved } from "../rules/installed-rules.ts";
import type { AttachMode } from "./attach-mode.ts";
import { type AttachmentParts, MORE_DESCRIPTORS } from "./attachment-parts.ts";
import type { ExtraPlace, ServedExtra } from "./namespace-extra.ts";
import { type Serving, planInputOf } from "./serving.ts";

/** The attachment that opens, and what it needs. */
interface OpenRequest {
  readonly containerId: string;
  /** Of a process of it. */
  readonly pid: number;
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

type Opened = Pick<Serving, "netns" | "capture" | "pairs" | "bound" | "zone" | "extra" | "passage"> & {
  readonly spared: readonly number[];
};

/** The namespace, proven to be the container's. */
export interface OpenNamespace {
  readonly id: NamespaceId;
  readonly netns: NetNamespace;
}

/** What has been created so far, and must be undone if a later step fails. `bound`: sockets that the endpoint does not own yet. */
type Created = { -readonly [K in "bound" | "extra" | "endpoint"]?: Serving[K] } & {
  rules?: RuleSet;
  /** `capture` of the mode was called. */
  isPrepared?: boolean;
};

/**
 * Proves the namespace and opens it. The kernel assigns the lowest free descriptor number, so a high number means that few
 * are left.
 */
export function openNamespace(
  claim: NamespaceClaim,
  { prove, runner, memory, descriptorsMax }: AttachmentParts,
): OpenNamespace {
  const { fd, id } = prove(claim);
  if (fd < descriptorsMax - LIMITS.descriptorsReserved) return { id, netns: runner.namespaceOf(fd, memory) };
  closeQuietly(fd);
  throw new Fault("EMFILE", `Almost all of the ${descriptorsMax} file descriptors are in use`, {
    remedy: MORE_DESCRIPTORS,
  });
}

export async function openServing(
  { id, netns }: OpenNamespace,
  request: OpenRequest,
): Promise<{ readonly serving: Serving; readonly spared: readonly number[] }> {
  const { parts, containerId, view, mode, isTrial } = request;
  const { runner, host, openEndpoint } = parts;
  const held = parts.inherit?.(id);
  const passage = openPassage(id, request, held?.mark);
  const created: Created = {};
  const lifetime = { isEnded: false };
  let reading: Promise<unknown> | undefined;
  try {
    // First, so that its descriptor number is the lowest: the kernel closes a dead process's descriptors in order,
    // and the rules must be gone before the sockets that they redirect to.
    const rules = (created.rules = new RuleSet(parts.ruleBackend.backend, netns, held));
    request.ownPorts.add(rules.netlinkPort);
    const orphans = held === undefined ? requireUnserved(netns) : [];
    reading = Promise.allSettled([orphans]);
    if (mode.undo !== undefined) await orphans;
    // Lets that reach the calls that other threads make, which go on while the sockets are created.
    else await Promise.resolve();
    const { spared, ...sockets } = await netns.untilClosed(() =>
      held === undefined
        ? openFresh(netns, passage, request, created)
        : takeOver(netns, { held, passage }, request, created),
    );
    const opened = { ...sockets, rules };
    const endpoint = openEndpoint(view, (server, type) => {
      if (lifetime.isEnded) throw new Fault("ENDED", "The namespace is no longer served");
      if (server.from === "node") {
        if (parts.dialInNode === undefined) throw new Fault("ENDED", "There are no nodes to query from");
        return parts.dialInNode(server, type);
      }
      if (server.from !== "host") return dialIn(runner, netns.fd, server, type, true);
      return dialIn(runner, host().network, server, type, parts.isHostCaptured?.());
    });
    created.endpoint = endpoint;
    const orphaned = await orphans;
    // Opening the endpoint has assigned its policy.
    const isEnforced = (): boolean => parts.isEnforced?.(containerId) === true;
    let closesResolver = isEnforced();
    // Where a policy is enforced, there is no trial: whoever lets it fail would have Docker's resolver meanwhile.
    const isOnTrial = (): boolean => isTrial && held === undefined && !closesResolver;
    const plans = (): TablePlan[] => {
      const plan = isOnTrial() ? trialPlan : servingPlan;
      passage.needsGroup = closesResolver;
      return plan(planInputOf({ ...opened, closesResolver }, spared));
    };
    const listen = (): void => {
      created.bound = [];
      endpoint.add(opened.bound);
    };
    // The next round comes when the rules have been given to another thread, which takes longer to send them.
    await allDone([
      held === undefined ? opened.rules.install(plans(), orphaned) : opened.rules.replaceTables(plans()),
      nextRound().then(listen),
    ]);
    while (isEnforced() !== closesResolver) {
      closesResolver = !closesResolver;
      await opened.rules.replaceTables(plans());
    }
    parts.onServing?.(containerId, endpoint.counters, true);
    const serving: Serving = Object.assign(lifetime, {
      ...opened,
      endpoint,
      closesResolver,
      isTrial: isOnTrial(),
    });
    return { serving, spared };
  } catch (error) {
    lifetime.isEnded = true;
    await rollBack(netns, request, created);
    passage.end();
    // Until then it uses the descriptor of the namespace.
    await reading;
    if (held !== undefined) parts.disinherit?.(id);
    throw error;
  }
}

/** The packets of this process are told by its control group, where rules can match that and the container is in another one. */
function openPassage(id: NamespaceId, { parts, pid }: OpenRequest, mark: number | undefined): Passage {
  const isTold = parts.ruleBackend.matchesGroups === true && parts.host().sharesPids;
  const group = isTold ? ownGroup(pid) : undefined;
  return parts.runner.passages.open(id, group, mark);
}

function openFresh(netns: NetNamespace, passage: Passage, request: OpenRequest, created: Created): Opened {
  const { parts, mode, watchRules } = request;
  // A new zone, because conntrack entries of earlier sockets point to ports that are closed now.
  const zone = parts.nextZone();
  return netns.within(() => {
    created.isPrepared = true;
    const capture = mode.capture();
    const spared = tcpClientPortsOf(capturedInside(capture));
    const pairs = (created.bound = bindSockets(capture.redirects));
    watchRules();
    const extra = (created.extra = openExtra(request, { capture, pairs, mark: passage.mark, held: [] }));
    return { netns, capture, pairs, bound: pairs, zone, extra, passage, spared };
  });
}

/** Takes over the sockets and zone, so that waiting clients get their answers from us. */
function takeOver(
  netns: NetNamespace,
  { held, passage }: { readonly held: HeldNamespace; readonly passage: Passage },
  request: OpenRequest,
  created: Created,
): Opened {
  const { mode, watchRules } = request;
  created.bound = held.pairs;
  try {
    return netns.within(() => {
      created.isPrepared = true;
      const capture = mode.capture();
      const { pairs, added } = pairsFor(capture.redirects, held.pairs);
      const bound = (created.bound = [...held.pairs, ...added]);
      watchRules();
      const { zone, spared, programs } = held;
      const extra = (created.extra = openExtra(request, { capture, pairs, mark: passage.mark, held: programs }));
      return { netns, capture, pairs, bound, zone, extra, passage, spared };
    });
  } finally {
    for (const each of [...held.programs, held.gate]) if (each !== undefined) void closeInPool(each);
  }
}

function openExtra(
  { containerId, mode, parts }: OpenRequest,
  place: Omit<ExtraPlace, "containerId" | "onlyByProcess">,
): ServedExtra | undefined {
  return parts.extra?.open({ ...place, containerId, onlyByProcess: mode.onlyByProcess });
}

async function rollBack(
  netns: NetNamespace,
  { mode, ownPorts }: OpenRequest,
  { rules, bound = [], extra, endpoint, isPrepared }: Created,
): Promise<void> {
  if (rules !== undefined) await removeRules(rules, ownPorts);
  extra?.close();
  closeSockets(bound);
  endpoint?.close();
  if (isPrepared === true) await netns.read(() => mode.undo?.());
}

/** Binds what the mode captures now and did not before, and replaces the rules by those that are needed now. */
export async function updateServing(
  serving: Serving,
  { mode, isEnforced }: { readonly mode: AttachMode; readonly isEnforced: () => boolean },
  spared: readonly number[],
): Promise<void> {
  const { capture, pairs, added } = await serving.netns.read(() => {
    const wanted = mode.capture();
    return { capture: wanted, ...pairsFor(wanted.redirects, serving.bound) };
  });
  if (capture !== serving.capture) serving.extra?.setCapture(capture);
  let { isTrial } = serving;
  let closesResolver: boolean;
  try {
    do {
      closesResolver = isEnforced();
      isTrial &&= !closesResolver;
      serving.passage.needsGroup = closesResolver;
      const input = planInputOf({ ...serving, capture, pairs, closesResolver }, spared);
      await serving.rules.replaceTables(isTrial ? trialPlan(input) : servingPlan(input));
    } while (isEnforced() !== closesResolver);
  } catch (error) {
    closeSockets(added);
    throw error;
  }
  serving.endpoint.add(added);
  Object.assign(serving, { capture, pairs, isTrial, closesResolver, bound: [...serving.bound, ...added] });
}

/** Re-creates rules that no process owns, because another program may have flushed them. Returns whether it did. */
export async function reinstall(
  serving: Serving,
  spared: readonly number[],
  { ruleBackend }: AttachmentParts,
): Promise<boolean> {
  if (ruleBackend.backend === "nft-owner") return false;
  await serving.rules.install(servingPlan(planInputOf(serving, spared)), await installedRules(serving.netns));
  return true;
}

/** Removes the rules. The netlink socket that owned them closes later, when that is cheap. */
export async function removeRules(rules: RuleSet, ownPorts: Set<number>): Promise<void> {
  await rules.remove();
  closeLater(() => {
    rules.close();
    ownPorts.delete(rules.netlinkPort);
  });
}

export function closeLater(close: () => void): void {
  setTimeout(close, LIMITS.nftLingerMs).unref();
}
