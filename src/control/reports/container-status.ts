/**
 * ContainerStatus: the status of a container, from the decision of the roster and the state of its attachment.
 */
import { byName } from "../../base/lib/text.ts";
import type { ContainerStatus, RecentQueries } from "../../api/status.ts";
import type { Attachment } from "../../container/attach/attachment.ts";
import { type Decision, sharedText } from "../../container/attach/decision.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import { gatherInSlices } from "../../base/lib/slices.ts";
import { serverText } from "../../base/model/server-text.ts";
import type { View } from "../../base/model/view.ts";
import { presentation } from "../../base/dns/name.ts";
import { namedContainer, sharedOwner } from "../situation/find-container.ts";
import { mountedResolvConf } from "../situation/situations.ts";
import { NOT_ASKED } from "../../base/model/finding.ts";
import type { Containers } from "../situation/ports.ts";

/** What has become of a container. */
export type ContainerState = Pick<ContainerStatus, "name" | "state" | "code" | "reason">;

/** The state of every running container: what can be read of a thousand in one go. */
export function containerStates({ facts, decisionOf, attachmentOf }: Containers): ContainerState[] {
  const states: ContainerState[] = [];
  for (const { id, name } of facts.values()) {
    const decision = decisionOf(id);
    if (decision !== undefined) states.push({ name, ...stateOf(decision, attachmentOf(id)) });
  }
  return states;
}

/** The status of every running container, sorted by name. Each takes a view, so they are made in slices. */
export async function containerStatuses(containers: Containers): Promise<ContainerStatus[]> {
  const statuses = await gatherInSlices(eachStatus(containers));
  return statuses.toSorted(byName);
}

/** Those that were running at the beginning, as they are in their turn. */
function* eachStatus(containers: Containers): Generator<ContainerStatus> {
  for (const id of [...containers.facts.keys()]) {
    const fact = containers.facts.get(id);
    const decision = containers.decisionOf(id);
    if (fact !== undefined && decision !== undefined) yield containerStatus(fact, decision, containers);
  }
}

function stateOf(decision: Decision, attachment: Attachment | undefined): Omit<ContainerState, "name"> {
  if (decision.kind === "skip") {
    const state = decision.code === "quarantined" ? "quarantined" : "skipped";
    return { state, code: decision.code, reason: decision.reason };
  }
  const state = attachment?.state ?? { kind: "opening" };
  if (state.kind === "failed") return { state: "failed", code: state.code, reason: state.reason };
  return { state: state.kind === "closed" ? "opening" : state.kind };
}

function containerStatus(fact: ContainerFact, decision: Decision, containers: Containers): ContainerStatus {
  const { node, ...ofFeatures } = containers.ofFeatures.status(fact.id);
  const { project, service } = namedContainer(fact);
  const attachment = decision.kind === "serve" ? containers.attachmentOf(fact.id) : undefined;
  const mounted = attachment === undefined ? undefined : mountedResolvConf(fact, fact);
  const mount = mounted === undefined ? undefined : `${mounted} is mounted over its resolv.conf`;
  const warning = [decision.warning, attachment?.warning, mount].filter((text) => text !== undefined).join("; ");
  const base = {
    id: fact.id,
    name: fact.name,
    isPaused: fact.isPaused,
    project,
    service,
    networks: fact.endpoints.map(({ networkName }) => networkName),
    ...(warning !== "" && { warning }),
    ...ofFeatures,
  };
  if (decision.kind === "skip") {
    const owner = sharedOwner(containers.facts, fact);
    const shared = owner === undefined ? {} : sharedStatus(owner, containers);
    return { ...base, ...stateOf(decision, undefined), ...shared, ...listenerStatus(fact, containers) };
  }
  return {
    ...base,
    ...attachmentStatus(attachment, recentOf(fact, containers)),
    // Programs that ask dns11 have mounted a file that lists its address.
    ...(mounted !== undefined && !hasQueried(attachment) && { code: NOT_ASKED }),
    ...(node !== undefined && { node }),
    upstreams: upstreamsOf(containers.viewOf(fact)),
  };
}

function sharedStatus({ id, name }: ContainerFact, { attachmentOf }: Containers): Partial<ContainerStatus> {
  if (attachmentOf(id)?.state.kind !== "attached") return { reason: sharedText(name), sharesWith: name };
  return {
    reason: `it shares the network of ${name}, and its queries are counted there`,
    sharesWith: name,
    isServedWith: true,
  };
}

/** A client that is not attached is the listener's. */
function listenerStatus(fact: ContainerFact, containers: Containers): Partial<ContainerStatus> {
  const client = containers.clients.of(fact.id);
  if (client === undefined) return {};
  const recent = recentOf(fact, containers);
  const { counters } = client;
  return { asksListener: true, counters, ...(recent !== undefined && { recent }), upstreams: upstreamsOf(client.view) };
}

function hasQueried(attachment: Attachment | undefined): boolean {
  return (attachment?.endpoint?.counters["queries"] ?? 0) > 0;
}

function attachmentStatus(
  attachment: Attachment | undefined,
  recent: RecentQueries | undefined,
): Pick<ContainerStatus, "state"> & Partial<ContainerStatus> {
  const state = attachment?.state;
  if (attachment === undefined || state === undefined || state.kind === "opening" || state.kind === "closed") {
    return { state: "opening" };
  }
  const { namespaceId, endpoint, repairs } = attachment;
  const counters = endpoint?.counters;
  const [listening] = attachment.listening;
  const common = {
    state: state.kind,
    ...(namespaceId !== undefined && { namespace: namespaceId }),
    ...(listening !== undefined && { ports: { udp: listening.udpPort, tcp: listening.tcpPort } }),
    ...(repairs > 0 && { repairs }),
    ...(counters !== undefined && { counters }),
    ...(recent !== undefined && { recent }),
  };
  switch (state.kind) {
    case "verifying":
      return { ...common, since: iso(state.sinceMs) };
    case "attached":
      return { ...common, since: iso(state.sinceMs), verified: iso(state.verifiedMs) };
    case "failed":
      return {
        ...common,
        since: iso(state.atMs),
        code: state.code,
        reason: state.reason,
        culprits: state.culprits,
        ...(state.isHeld && { isHeld: state.isHeld }),
      };
  }
}

function recentOf({ id }: ContainerFact, { clients }: Containers): RecentQueries | undefined {
  const recent = clients.recentOf(id);
  return recent && { ...recent, failures: recent.errors + (clients.of(id)?.failures.localPerMinute ?? 0) };
}

/** Servers in Docker's notation, where `host(ADDRESS)` is queried from the host. Servers of a domain follow its name. */
function upstreamsOf({ upstreams }: View): string[] {
  return upstreams.routes.toReversed().map(({ suffix, servers, isLocal, missing = [] }) => {
    const all = [...servers.map((each) => serverText(each)), ...missing.map(({ server }) => `${server}(missing)`)];
    const list = isLocal ? "local" : all.join(" ") || "none";
    return suffix.length === 0 ? list : `/${presentation(suffix, 0, suffix.length)}/${list}`;
  });
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
