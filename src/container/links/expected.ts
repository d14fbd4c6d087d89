/**
 * Expected: what Docker says about the links of a container: on which bridge each of its networks is, and which networks
 * have no link on the host.
 */
import type { ContainerFact, EndpointFact, NetworkFact } from "../facts/fact.ts";
import type { ContainerLink, NoLink } from "./container-link.ts";
import { linkLocalOf } from "./link-local.ts";

const SHARED = "container:";

/** undefined: links are to be looked for. */
export function noLinkAtAll({ networkMode, endpoints }: ContainerFact): NoLink | undefined {
  if (networkMode === "host") return { reason: "host-network", text: "it uses the host's network" };
  if (networkMode.startsWith(SHARED)) {
    const owner = networkMode.slice(SHARED.length);
    return { reason: "shared-namespace", text: `it shares the network of container ${owner.slice(0, 12)}`, owner };
  }
  if (networkMode === "none" || endpoints.length === 0) return { reason: "no-network", text: "it is on no network" };
  return undefined;
}

/** The endpoint whose network has this bridge. */
export function endpointOn(
  { endpoints }: ContainerFact,
  bridge: string | undefined,
  networkOf: (id: string) => NetworkFact | undefined,
): EndpointFact | undefined {
  if (bridge === undefined) return undefined;
  return endpoints.find(({ networkId }) => networkOf(networkId)?.bridge === bridge);
}

export function addressesOf({ ipv4, ipv6, mac }: EndpointFact): readonly string[] {
  return [ipv4, ipv6, mac && linkLocalOf(mac)].filter((address) => address !== undefined);
}

/** The networks that none of `links` is on. */
export function missingAmong(
  links: readonly ContainerLink[],
  { endpoints }: ContainerFact,
  networkOf: (id: string) => NetworkFact | undefined,
): readonly NoLink[] {
  return endpoints
    .filter(({ networkId }) => !links.some((link) => link.networkId === networkId))
    .map(({ networkId, networkName }) => {
      const network = networkOf(networkId);
      if (network !== undefined && network.bridge === undefined) {
        const text = `the driver ${network.driver} of network ${networkName} makes no link on the host`;
        return { reason: "other-driver", networkId, text };
      }
      const bridge = network?.bridge === undefined ? "" : ` (bridge ${network.bridge})`;
      return {
        reason: "not-found",
        networkId,
        text: `no link on network ${networkName}${bridge} was found on the host`,
      };
    });
}
