/**
 * The engine's JSON into facts. API versions differ in what they tell; that ends here.
 */
import { addressBytes } from "../../base/model/address.ts";
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
/** KIND gives its nodes this variable where the cluster's settings name a search list. */
const KIND_SEARCH = "KIND_DNS_SEARCH";
const HOST_NAME = "host.docker.internal";

/** Whether the container runs and its network is up; between two starts of a restart policy it is neither. */
export function isUp({ State: state }: ContainerJson): boolean {
  return state?.Running === true && state.Restarting !== true;
}

/** All of them, whoever said them. */
export function mergedLabels(json: ContainerJson): Labels {
  return json.Config?.Labels ?? {};
}

/** Where nobody has told the labels apart, all of them count as the image's. */
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

export function networkFact(json: NetworkJson): NetworkFact {
  return {
    id: json.Id,
    name: json.Name,
    driver: json.Driver ?? "",
    scope: json.Scope ?? "local",
    isInternal: json.Internal === true,
  };
}

/** The networks of a container that is up; one that it is only configured for has no endpoint. */
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

/** Engines from 25 on tell the names; before, they are put together from what those engines used themselves. */
function namesOf(json: ContainerJson, networkName: string, endpoint: EndpointJson): string[] {
  if (endpoint.DNSNames != null) return [...endpoint.DNSNames];
  // On the default bridge there are none, until the container is renamed and the engine gives it some there too.
  if (!isUserDefined(networkName)) return [];
  const shortId = json.Id.slice(0, SHORT_ID_LENGTH);
  const names = [bareName(json.Name), ...(endpoint.Aliases ?? []), shortId, json.Config?.Hostname ?? ""];
  return [...new Set(names.filter((name) => name !== ""))];
}

/** The last one counts, as for every program. */
function variable(all: readonly string[], name: string): string | undefined {
  return all.findLast((text) => text.startsWith(`${name}=`))?.slice(name.length + 1);
}

/** Of `--add-host`; its word host-gateway stands for an address that only the engine knows. */
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

/** What a list shows of a container, as one text: two equal ones mean that nothing has to be asked anew. */
export function listedFingerprint(json: ListedJson): string {
  // A container that others link to is listed under their names too.
  const name = json.Names?.find((candidate) => candidate.lastIndexOf("/") === 0) ?? "";
  const endpoints = Object.values(json.NetworkSettings?.Networks ?? {});
  return fingerprint(
    bareName(name),
    json.State === "paused",
    endpoints
      .filter(({ EndpointID }) => EndpointID)
      .map((endpoint) => [endpoint.EndpointID ?? "", address(endpoint.IPAddress), address(endpoint.GlobalIPv6Address)]),
  );
}

/** The same of what is known. */
export function knownFingerprint(fact: ContainerFact): string {
  return fingerprint(
    fact.name,
    fact.isPaused,
    fact.endpoints.map(({ endpointId, ipv4, ipv6 }) => [endpointId, ipv4, ipv6]),
  );
}

function fingerprint(name: string, isPaused: boolean, endpoints: readonly (string | undefined)[][]): string {
  return JSON.stringify([name, isPaused, endpoints.map((parts) => parts.join(" ")).toSorted()]);
}
