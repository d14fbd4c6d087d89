/**
 * HostGateway: the default addresses of the engine's host for containers: the host's side of the default bridge.
 */
import type { HostGateway } from "../../container/names/host-name/host-name.ts";
import { DEFAULT_BRIDGE } from "../../container/facts/fact.ts";
import type { NetworkJson } from "../../container/watch/engine-json.ts";
import type { Engine } from "../../container/watch/engine.ts";

/** Without addresses if the engine does not tell: nodes can also be reached in other ways, and the next connection asks again. */
export async function hostGateway(engine: Pick<Engine, "network">): Promise<HostGateway> {
  try {
    return gatewayIn(await engine.network(DEFAULT_BRIDGE));
  } catch {
    return { ipv4: undefined, ipv6: undefined };
  }
}

/** That of the default bridge as the engine describes it. */
export function gatewayIn(json: NetworkJson | undefined): HostGateway {
  const gateways = (json?.IPAM?.Config ?? []).flatMap(gatewayOf);
  return {
    ipv4: gateways.find((address) => !address.includes(":")),
    ipv6: gateways.find((address) => address.includes(":")),
  };
}

/** An engine that has just started may not report the gateway of the bridge: it is the first address. */
function gatewayOf({ Gateway: gateway, Subnet: subnet }: { Gateway?: string; Subnet?: string }): string[] {
  const address = gateway ?? /^(\d+\.\d+\.\d+)\.0\//.exec(subnet ?? "")?.[1]?.concat(".1");
  // Some engines write it with the length of the prefix.
  return address === undefined ? [] : [address.replace(/\/\d+$/, "")];
}
