/**
 * ListContainers: the containers of the engine with what concerns their names: networks, names, addresses, and whether dns11 serves
 * them. With one container, also the resolv.conf of its programs, because that takes a file each.
 */
import { byName } from "../../base/lib/text.ts";
import type {
  ContainerNetwork,
  ContainerReport,
  ContainersReport,
  ResolvConfReport,
  NetworkMember,
  NetworkReport,
  NetworksReport,
} from "../../api/containers.ts";
import type { ContainerStatus } from "../../api/status.ts";
import { gatherInSlices } from "../../base/lib/slices.ts";
import { LIMITS } from "../../base/limits.ts";
import { failureText } from "../../container/attach/attachment-state.ts";
import { type ContainerFact, DEFAULT_BRIDGE, isUserDefined } from "../../container/facts/fact.ts";
import { containerCalled } from "../../base/model/container-choice.ts";
import { type KnownContainer, type StoppedContainer, stoppedContainer } from "../causes/known-container.ts";
import { composeFilterOf } from "../situation/address-owners.ts";
import { containerStatuses } from "./container-status.ts";
import { namespaceOwner } from "../situation/find-container.ts";
import type { ApiRequest } from "../server/http.ts";
import { isTrue, refuseUnknown } from "../server/parameters.ts";
import type { ControlPorts, EngineNetwork } from "../situation/ports.ts";

type Ports = Pick<ControlPorts, "containers" | "inside">;

/** `GET /v1/containers` with `all` (also stopped ones), `container`, `project` and `service`. */
export async function listContainers(ports: Ports, { query }: Pick<ApiRequest, "query">): Promise<ContainersReport> {
  refuseUnknown(query, ["all", "container", "project", "service"]);
  const word = query.get("container") ?? "";
  const filter = await composeFilterOf(query, ports);
  const running = await runningReports(ports.containers);
  const stopped = isTrue(query, "all") || word !== "" ? await stoppedReports(ports.containers) : [];
  const all = [...running, ...stopped].filter((each) => filter?.acceptsPlace(each) !== false);
  if (word !== "") return { containers: [withResolvConf(ports, oneOf(all, word))], omitted: 0 };
  const sorted = all.toSorted(byName);
  return {
    containers: sorted.slice(0, LIMITS.containersListed),
    omitted: Math.max(0, sorted.length - LIMITS.containersListed),
  };
}

/** A running container takes precedence over a stopped one of the same service. */
function oneOf(all: readonly ContainerReport[], word: string): ContainerReport {
  const running = all.filter(({ dns }) => dns !== null);
  try {
    return containerCalled(running, word);
  } catch (error) {
    const isStopped = all.some(({ id, name }) => name === word || id.startsWith(word));
    if (!isStopped) throw error;
    return containerCalled(all, word);
  }
}

async function runningReports(containers: Ports["containers"]): Promise<ContainerReport[]> {
  const statuses = new Map((await containerStatuses(containers)).map((status) => [status.id, status]));
  return await gatherInSlices(eachRunning([...containers.facts.values()], statuses));
}

function* eachRunning(
  facts: readonly ContainerFact[],
  statuses: ReadonlyMap<string, ContainerStatus>,
): Generator<ContainerReport> {
  for (const fact of facts) yield runningReport(fact, statuses.get(fact.id));
}

function runningReport(fact: ContainerFact, status: ContainerStatus | undefined): ContainerReport {
  const { onDefaultBridge: bridge } = fact;
  const endpoints = fact.endpoints.map((endpoint): ContainerNetwork => {
    const { networkName, names, ipv4, ipv6 } = endpoint;
    return networkOf(networkName, isUserDefined(networkName), names, ipv4, ipv6);
  });
  const isBridgeMissing = bridge !== undefined && !endpoints.some(({ network }) => network === DEFAULT_BRIDGE);
  return {
    id: fact.id,
    name: fact.name,
    project: status?.project ?? null,
    service: status?.service ?? null,
    state: fact.isPaused ? "paused" : "running",
    exitCode: null,
    since: fact.startedAt === "" ? null : fact.startedAt,
    health: fact.health ?? null,
    dns: status?.state ?? "opening",
    code: status?.code ?? null,
    reason: status?.reason === undefined ? null : failureText({ reason: status.reason, culprits: status.culprits }),
    ...(status?.sharesWith !== undefined && { sharesWith: status.sharesWith }),
    networks: isBridgeMissing
      ? [...endpoints, networkOf(DEFAULT_BRIDGE, false, [], bridge.ipv4, bridge.ipv6)]
      : endpoints,
    upstreams: status?.upstreams ?? [],
  };
}

function networkOf(
  network: string,
  hasNames: boolean,
  names: readonly string[],
  ipv4: string | undefined,
  ipv6: string | undefined,
): ContainerNetwork {
  const lowered = [...new Set(names.map((name) => name.toLowerCase()))];
  return { network, hasNames, names: lowered, ipv4: ipv4 ?? null, ipv6: ipv6 ?? null };
}

async function stoppedReports({ stopped, facts }: Ports["containers"]): Promise<ContainerReport[]> {
  // It may have started meanwhile.
  return (await stopped())
    .filter(({ id }) => !facts.has(id))
    .map((each) => stoppedReport(each, stoppedContainer(each)));
}

function stoppedReport(container: StoppedContainer, { compose }: KnownContainer): ContainerReport {
  const { id, name, state, exitCode, atMs, networks } = container;
  const own = [name, ...(compose === undefined ? [] : [compose.service])];
  return {
    id,
    name,
    project: compose?.project ?? null,
    service: compose?.service ?? null,
    state,
    exitCode: exitCode ?? null,
    since: atMs === undefined ? null : new Date(atMs).toISOString(),
    health: null,
    dns: null,
    code: null,
    reason: null,
    networks: networks.map(({ name: network, aliases }) => {
      const hasNames = isUserDefined(network);
      return networkOf(network, hasNames, hasNames ? [...own, ...aliases] : [], undefined, undefined);
    }),
    upstreams: [],
  };
}

function withResolvConf({ containers, inside }: Ports, report: ContainerReport): ContainerReport {
  const fact = containers.facts.get(report.id);
  return fact === undefined ? report : { ...report, resolvConf: resolvConfOf({ containers, inside }, fact) };
}

function resolvConfOf({ containers, inside }: Ports, fact: ContainerFact): ResolvConfReport | null {
  const found = inside.resolvConfOf(fact) ?? inside.resolvConfOf(namespaceOwner(containers.facts, fact));
  if (found === undefined) return null;
  const { nameservers: servers, search, options } = found;
  return { servers, search, options };
}

/** `GET /v1/networks` with `project`. */
export async function listNetworks(
  { containers }: Pick<ControlPorts, "containers">,
  { query }: Pick<ApiRequest, "query">,
): Promise<NetworksReport> {
  refuseUnknown(query, ["project"]);
  const project = query.get("project") ?? "";
  const all = await containers.networks();
  const members = membersByNetwork(containers.facts.values());
  const networks = all
    .filter((network) => project === "" || network.project === project)
    .map((network) => networkReport(network, members.get(network.name) ?? []))
    .toSorted(byName);
  return {
    networks: networks.slice(0, LIMITS.networksListed),
    omitted: Math.max(0, networks.length - LIMITS.networksListed),
  };
}

function membersByNetwork(facts: Iterable<ContainerFact>): Map<string, NetworkMember[]> {
  const members = new Map<string, NetworkMember[]>();
  for (const { id, name, endpoints, onDefaultBridge } of facts) {
    const own = endpoints.map(({ networkName, ipv4, ipv6 }) => ({ networkName, ipv4, ipv6 }));
    const isOnBridge = own.some(({ networkName }) => networkName === DEFAULT_BRIDGE);
    if (onDefaultBridge !== undefined && !isOnBridge) own.push({ networkName: DEFAULT_BRIDGE, ...onDefaultBridge });
    for (const { networkName, ipv4, ipv6 } of own) {
      const member = { container: name, containerId: id, ipv4: ipv4 ?? null, ipv6: ipv6 ?? null };
      const others = members.get(networkName);
      if (others === undefined) members.set(networkName, [member]);
      else others.push(member);
    }
  }
  return members;
}

function networkReport(network: EngineNetwork, members: readonly NetworkMember[]): NetworkReport {
  const { id, name, driver, scope, isInternal, project, subnets } = network;
  return {
    id,
    name,
    driver,
    scope,
    isInternal,
    hasNames: isUserDefined(name),
    project: project ?? null,
    subnets: subnets.map(({ subnet, gateway }) => ({ subnet, gateway: gateway ?? null })),
    members: members.toSorted((a, b) => (a.container < b.container ? -1 : 1)),
  };
}
