/**
 * Translate: the engine's JSON into facts. Differences between API versions end here.
 */
import { addressBytes } from "../../base/model/address.ts";
import type { Health } from "../../base/model/health-policy.ts";
import {
  type ContainerFact,
  type EndpointFact,
  type NameserversFact,
  type NetworkFact,
  isUserDefined,
} from "../registry/fact.ts";
import { type Labels, type SplitLabels, splitLabels } from "../registry/labels.ts";
import type { ContainerJson, EndpointJson, ListedJson, NetworkJson } from "./engine-json.ts";

const SHORT_ID_LENGTH = 12;
/** KIND sets this variable on its nodes if the cluster's configuration has a search list. */
const KIND_SEARCH = "KIND_DNS_SEARCH";
const HOST_NAME = "host.docker.internal";

/** Whether the container and its network are up; between two starts of a restart policy neither is. */
export function isUp({ State: state }: ContainerJson): boolean {
  return state?.Running === true && state.Restarting !== true;
}

/** The container's labels, including those of its image. */
export function mergedLabels(json: ContainerJson): Labels {
  return json.Config?.Labels ?? {};
}

/** Labels that have not been split count as the image's. */
export function containerFact(
  json: ContainerJson,
  nameservers: NameserversFact,
  labels: SplitLabels = splitLabels(mergedLabels(json), undefined),
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
    ...labels,
    startedAt: json.State?.StartedAt ?? "",
    resolvConfPath: json.ResolvConfPath || undefined,
    kindSearch: variable(json.Config?.Env ?? [], KIND_SEARCH),
    hostGateway: (json.HostConfig?.ExtraHosts ?? []).flatMap(hostGateway).at(0),
    nameservers,
    endpoints: networks.flatMap(([name, endpoint]) => endpointFact(json, name, endpoint)),
  };
}

function healthOf({ State: state }: ContainerJson): Health | undefined {
  const status = state?.Health?.Status;
  // "none": the container has no check, or it is disabled.
  return status === "healthy" || status === "unhealthy" || status === "starting" ? status : undefined;
}

export function networkFact(json: NetworkJson): NetworkFact {
  return {
    id: json.Id,
    name: json.Name,
    driver: json.Driver ?? "",
    scope: json.Scope ?? "local",
    isInternal: json.Internal === true,
  };
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
      gatewayPriority: endpoint.GwPriority ?? 0,
    },
  ];
}

/** Engines from 25 on report the names; for older ones they are composed as those engines do internally. */
function namesOf(json: ContainerJson, networkName: string, endpoint: EndpointJson): string[] {
  if (endpoint.DNSNames != null) return [...endpoint.DNSNames];
  // The default bridge has no names (until a container is renamed: then the engine gives it some there, too).
  if (!isUserDefined(networkName)) return [];
  const shortId = json.Id.slice(0, SHORT_ID_LENGTH);
  const names = [bareName(json.Name), ...(endpoint.Aliases ?? []), shortId, json.Config?.Hostname ?? ""];
  return [...new Set(names.filter((name) => name !== ""))];
}

/** The value of an environment variable; the last one applies. */
function variable(all: readonly string[], name: string): string | undefined {
  return all.findLast((text) => text.startsWith(`${name}=`))?.slice(name.length + 1);
}

/** The address of host.docker.internal in an `--add-host`; "host-gateway" is an address that only the engine knows. */
function hostGateway(text: string): string[] {
  const [, name, value] = /^([^:=]+)[:=](.*)$/s.exec(text) ?? [];
  const bare = value?.replace(/^\[(.*)\]$/, "$1");
  return name === HOST_NAME && address(bare) !== undefined ? [bare as string] : [];
}

function address(text: string | undefined): string | undefined {
  return text !== undefined && addressBytes(text) !== undefined ? text : undefined;
}

function bareName(name: string): string {
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
