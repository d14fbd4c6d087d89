/**
 * BuildsFact: the steps of `docker build` as one more container, so that they have one view and one share of everything, and that status,
 * tail and explain can name them.
 */
import { LISTENER_ADDRESSES } from "../../base/model/listener-addresses.ts";
import type { Decision } from "../attach/decision.ts";
import { BUILDS_ID, type ContainerFact, DEFAULT_BRIDGE, type NetworkFact } from "../facts/fact.ts";
import { outsiderEndpoint, outsiderFact } from "../facts/outsider.ts";

export const BUILDS_DECISION: Decision = {
  kind: "skip",
  code: "default-network-only",
  reason: `the steps of docker build are not served in their namespaces; dns11 answers those that ask ${LISTENER_ADDRESSES.ipv4}`,
};

/** What Docker says of the default bridge, where steps are. */
export interface BuildsPlace {
  readonly networkId: string;
  readonly ipv4Gateway: string | undefined;
  readonly ipv6Gateway: string | undefined;
}

/** `named`: the network whose names they resolve, as if they were on it. */
export function buildsFact(place: BuildsPlace | undefined, named: NetworkFact | undefined): ContainerFact {
  const onBridge = place === undefined ? [] : [outsiderEndpoint(BUILDS_ID, { ...place, networkName: DEFAULT_BRIDGE })];
  const onNamed =
    named === undefined || named.id === place?.networkId
      ? []
      : [
          outsiderEndpoint(BUILDS_ID, {
            networkId: named.id,
            networkName: named.name,
            ipv4Gateway: undefined,
            ipv6Gateway: undefined,
          }),
        ];
  return outsiderFact({ id: BUILDS_ID, networkMode: DEFAULT_BRIDGE, endpoints: [...onNamed, ...onBridge] });
}
