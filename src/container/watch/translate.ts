/**
 * Translate: the engine's JSON into facts. Differences between API versions end here.
 */
import { COMPOSE_LABEL } from "../../base/model/compose.ts";
import { addressBytes } from "../../base/model/address.ts";
import type { Health } from "../../base/model/name-choices.ts";
import {
  type ContainerFact,
  type BridgeEndpoint,
  DEFAULT_BRIDGE,
  type EndpointFact,
  type HostEntry,
  type NameserversFact,
  type NetworkFact,
  type StoppedFact,
  isUserDefined,
} from "../facts/fact.ts";
import type { SplitLabels } from "../facts/labels.ts";
import {
  type ContainerJson,
  type EndpointJson,
  KIND_SEARCH,
  type ListedJson,
  type NetworkJson,
} from "./engine-json.ts";
import { type SplitConfig, splitConfig } from "./split-config.ts";

const SHORT_ID_LENGTH = 12;
/** The option of a network that names its bridge. */
const BRIDGE_NAME = "com.docker.network.bridge.name";
/** Whether its containers may reach each other: "false", in all forms that Docker reads. */
const ICC = "com.docker.network.bridge.enable_icc";
/** What the kernel then does by itself. */
const MACVLAN_MODE = "macvlan_mode";
const PRIVATE = "private";
const FALSE: ReadonlySet<string | undefined> = new Set(["0", "f", "F", "false", "FALSE", "False"]);

/** Whether the container and its network are up; between two starts of a restart policy neither is. */
export function isUp({ State: state }: ContainerJson): boolean {
  return state?.Running === true && state.Restarting !== true;
}

/** What is only in files that the engine made for a container. */
export interface ContainerFiles {
  readonly nameservers: NameserversFact;
  readonly extraHosts: readonly HostEntry[];
}

/** What has not been split counts as the image's. */
export function containerFact(
  json: ContainerJson,
  { nameservers, extraHosts }: ContainerFiles,
  split: SplitConfig = splitConfig(json, undefined),
): ContainerFact {
  const networks = Object.entries(json.NetworkSettings?.Networks ?? {});
  return {
    id: json.Id,
    name: bareName(json.Name),
    isPaused: json.State?.Paused === true,
    health: healthOf(json),
    pid: json.State?.Pid ?? 0,
    sandboxKey: json.NetworkSettings?.SandboxKey ?? "",
    networkMode: json.HostConfig?.NetworkMode ?? "",
    ...(isPrivileged(json) && { isPrivileged: true }),
    ...(json.HostConfig?.Runtime !== undefined && { runtime: json.HostConfig.Runtime }),
    hostname: json.Config?.Hostname ?? "",
    domainName: json.Config?.Domainname ?? "",
    ...split,
    startedAt: json.State?.StartedAt ?? "",
    ...(json.RestartCount !== undefined && json.RestartCount > 0 && { restarts: json.RestartCount }),
    resolvConfPath: json.ResolvConfPath || undefined,
    ...(json.HostsPath !== undefined && json.HostsPath !== "" && { hostsPath: json.HostsPath }),
    kindSearch: variable(json.Config?.Env ?? [], KIND_SEARCH),
    extraHosts,
    nameservers,
    endpoints: networks.flatMap(([name, endpoint]) => endpointFact(json, name, endpoint)),
    onDefaultBridge: bridgeEndpoint(json),
  };
}

/** A container that is not running: the engine has no addresses for it, but its networks and names. */
export function stoppedFact(json: ContainerJson, { labels, imageLabels }: SplitLabels): StoppedFact {
  const networks = Object.entries(json.NetworkSettings?.Networks ?? {}).filter(([name]) => isUserDefined(name));
  return {
    id: json.Id,
    name: bareName(json.Name),
    sinceMs: Math.max(timeOf(json.State?.FinishedAt), timeOf(json.Created)),
    labels,
    imageLabels,
    networks: networks.map(([name, endpoint]) => ({
      name,
      // Those that the engine reports may be missing before the first start.
      names: [...new Set([...composedNames(json, endpoint.Aliases ?? []), ...(endpoint.DNSNames ?? [])])],
    })),
  };
}

function timeOf(text = ""): number {
  return Date.parse(text) || 0;
}

function healthOf({ State: state }: ContainerJson): Health | undefined {
  const status = state?.Health?.Status;
  // "none": the container has no check, or it is disabled.
  return status === "healthy" || status === "unhealthy" || status === "starting" ? status : undefined;
}

/** Whether the container has no resolver of Docker's, because it is on the default bridge alone. */
export function isOnDefaultBridgeOnly(json: ContainerJson): boolean {
  const joined = Object.entries(json.NetworkSettings?.Networks ?? {}).filter(([, { EndpointID }]) => EndpointID);
  return joined.length > 0 && joined.every(([name]) => name === DEFAULT_BRIDGE);
}

export function networkFact(json: NetworkJson): NetworkFact {
  return {
    id: json.Id,
    name: json.Name,
    driver: json.Driver ?? "",
    scope: json.Scope ?? "local",
    isInternal: json.Internal === true,
    ...(json.Driver === "macvlan" &&
      json.Options?.[MACVLAN_MODE] === PRIVATE && { apartBy: `${MACVLAN_MODE}=${PRIVATE}` }),
    project: json.Labels?.[COMPOSE_LABEL.project],
    ...(json.Driver === "bridge" && {
      bridge: json.Options?.[BRIDGE_NAME] || `br-${json.Id.slice(0, SHORT_ID_LENGTH)}`,
      addressBlocks: subnetsOf(json),
      gateways: (json.IPAM?.Config ?? []).flatMap(({ Gateway: gateway }) => gateway || []),
      ...(FALSE.has(json.Options?.[ICC]) && { apartBy: `${ICC}=false` }),
    }),
    ...(json.Scope === "swarm" && {
      swarm: {
        isIngress: json.Ingress === true,
        subnets: subnetsOf(json),
      },
    }),
  };
}

function subnetsOf({ IPAM: ipam }: NetworkJson): readonly string[] {
  return (ipam?.Config ?? []).flatMap(({ Subnet: subnet }) => subnet ?? []);
}

/** The gateway of each family of a network, such as the default bridge. */
export function gatewayIn(json: NetworkJson | undefined): Record<"ipv4" | "ipv6", string | undefined> {
  const gateways = (json?.IPAM?.Config ?? []).flatMap(gatewayOf);
  return {
    ipv4: gateways.find((each) => !each.includes(":")),
    ipv6: gateways.find((each) => each.includes(":")),
  };
}

/** An engine that has just started may not report the gateway of the bridge: it is the first address. */
function gatewayOf({ Gateway: gateway, Subnet: subnet }: { Gateway?: string; Subnet?: string }): string[] {
  const found = gateway ?? /^(\d+\.\d+\.\d+)\.0\//.exec(subnet ?? "")?.[1]?.concat(".1");
  // Some engines write it with the length of the prefix.
  return found === undefined ? [] : [found.replace(/\/\d+$/, "")];
}

/**
 * Whoever has one of these, outside a user namespace, can enter the host's namespaces, read its files, change its kernel, or make
 * links in its network: the container's namespace has a number for the host's.
 */
const HOST_CAPABILITIES = new Set([
  ...["ALL", "SYS_ADMIN", "SYS_MODULE", "SYS_RAWIO", "SYS_PTRACE", "BPF"],
  ...["DAC_READ_SEARCH", "NET_ADMIN"],
]);

/** Those of these capabilities that make a container root on the host. */
export function hostCapabilities(added: readonly string[]): string[] {
  return added.filter((name) => HOST_CAPABILITIES.has(plainCapability(name)));
}

export function plainCapability(name: string): string {
  return name.toUpperCase().replace(/^CAP_/, "");
}

function isPrivileged({ HostConfig: host }: ContainerJson): boolean {
  return host?.Privileged === true || hostCapabilities(host?.CapAdd ?? []).length > 0;
}

/** A network on which the container is up; one that is only configured has no endpoint. */
function endpointFact(json: ContainerJson, networkName: string, endpoint: EndpointJson): EndpointFact[] {
  if (!endpoint.NetworkID || !endpoint.EndpointID) return [];
  return [
    {
      endpointId: endpoint.EndpointID,
      networkId: endpoint.NetworkID,
      networkName,
      names: namesOf(json, networkName, endpoint),
      links: endpoint.Links ?? [],
      ipv4: address(endpoint.IPAddress),
      ipv6: address(endpoint.GlobalIPv6Address),
      ipv4Gateway: address(endpoint.Gateway),
      ipv6Gateway: address(endpoint.IPv6Gateway),
      ...(isMac(endpoint.MacAddress) && { mac: endpoint.MacAddress }),
      gatewayPriority: endpoint.GwPriority ?? 0,
      ...(endpoint.Aliases?.includes(bareName(json.Name)) === true && { isComposed: true }),
    },
  ];
}

function bridgeEndpoint(json: ContainerJson): BridgeEndpoint | undefined {
  const { EndpointID, IPAddress, GlobalIPv6Address } = json.NetworkSettings?.Networks?.[DEFAULT_BRIDGE] ?? {};
  if (!EndpointID) return undefined;
  return {
    names: composedNames(json, []),
    links: json.HostConfig?.Links ?? [],
    ipv4: address(IPAddress),
    ipv6: address(GlobalIPv6Address),
  };
}

/** Engines from 25 on report the names; for older ones they are composed as those engines do internally. */
function namesOf(json: ContainerJson, networkName: string, endpoint: EndpointJson): string[] {
  if (endpoint.DNSNames != null) return [...endpoint.DNSNames];
  // The default bridge has no names (until a container is renamed: then the engine gives it some there, too).
  if (!isUserDefined(networkName)) return [];
  return composedNames(json, endpoint.Aliases ?? []);
}

function composedNames(json: ContainerJson, aliases: readonly string[]): string[] {
  const shortId = json.Id.slice(0, SHORT_ID_LENGTH);
  const names = [bareName(json.Name), ...aliases, shortId, json.Config?.Hostname ?? ""];
  return [...new Set(names.filter((name) => name !== ""))];
}

/** The value of an environment variable; the last one applies. */
function variable(all: readonly string[], name: string): string | undefined {
  return all.findLast((text) => text.startsWith(`${name}=`))?.slice(name.length + 1);
}

function address(text: string | undefined): string | undefined {
  return text !== undefined && addressBytes(text) !== undefined ? text : undefined;
}

function isMac(text: string | undefined): text is string {
  return text !== undefined && /^[\da-f]{2}(:[\da-f]{2}){5}$/.test(text);
}

/** The engine writes a slash before the name of a container. */
export function bareName(name: string): string {
  return name.startsWith("/") ? name.slice(1) : name;
}

/** The health of a container at the end of its listed status. */
const HEALTH_TEXT = /\((?:health: )?(starting|healthy|unhealthy)\)$/;

/** The listed state of a container as one text. If it equals that of the facts, no inspect is needed. */
export function listedFingerprint(json: ListedJson): string {
  // A linked container is also listed under the names of the containers that link to it.
  const name = json.Names?.find((candidate) => candidate.lastIndexOf("/") === 0) ?? "";
  const endpoints = Object.values(json.NetworkSettings?.Networks ?? {});
  return fingerprint(
    bareName(name),
    json.State === "paused",
    HEALTH_TEXT.exec(json.Status ?? "")?.[1],
    endpoints
      .filter(({ EndpointID }) => EndpointID)
      .map((endpoint) => [endpoint.EndpointID ?? "", address(endpoint.IPAddress), address(endpoint.GlobalIPv6Address)]),
  );
}

/** The same for the facts. */
export function knownFingerprint(fact: ContainerFact): string {
  return fingerprint(
    fact.name,
    fact.isPaused,
    fact.health,
    fact.endpoints.map(({ endpointId, ipv4, ipv6 }) => [endpointId, ipv4, ipv6]),
  );
}

function fingerprint(
  name: string,
  isPaused: boolean,
  health: string | undefined,
  endpoints: readonly (string | undefined)[][],
): string {
  return JSON.stringify([name, isPaused, health, endpoints.map((parts) => parts.join(" ")).toSorted()]);
}
