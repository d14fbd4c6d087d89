/**
 * Outsider: whoever asks dns11 and is no container, as one more container, so that status, tail and explain can name it.
 */
import type { ContainerFact, EndpointFact } from "./fact.ts";

/** What an outsider has of its own. Its name is its id; engines give containers ids of 64 hexadecimal digits. */
type OutsiderPlace = Pick<ContainerFact, "id" | "networkMode" | "endpoints">;

export function outsiderFact({ id, networkMode, endpoints }: OutsiderPlace): ContainerFact {
  return {
    id,
    name: id,
    labels: {},
    imageLabels: { labels: {}, source: "known" },
    startedAt: "",
    isPaused: false,
    pid: 0,
    sandboxKey: "",
    networkMode,
    hostname: "",
    domainName: "",
    ports: { published: [], exposed: [], ofImage: [] },
    resolvConfPath: undefined,
    kindSearch: undefined,
    extraHosts: [],
    health: undefined,
    nameservers: { kind: "host", isNdotsSet: false },
    endpoints,
    onDefaultBridge: undefined,
  };
}

/** It is on a network for the sake of the names there, and has no address. */
export function outsiderEndpoint(
  endpointId: string,
  place: Pick<EndpointFact, "networkId" | "networkName" | "ipv4Gateway" | "ipv6Gateway">,
): EndpointFact {
  return { ...place, endpointId, names: [], links: [], ipv4: undefined, ipv6: undefined, gatewayPriority: 0 };
}
