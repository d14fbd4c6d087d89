/**
 * ListNetworks: the networks of the engine with their subnets, and the running containers on them.
 */
import { byName } from "../../base/lib/by-name.ts";
import type { NetworkMember, NetworkReport, NetworksReport } from "../../api/networks.ts";
import { LIMITS } from "../../base/limits.ts";
import { type ContainerFact, DEFAULT_BRIDGE, isUserDefined } from "../../container/facts/fact.ts";
import type { ApiRequest } from "../server/http.ts";
import { refuseUnknown } from "../server/parameters.ts";
import type { ControlPorts, EngineNetwork } from "../situation/ports.ts";

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
