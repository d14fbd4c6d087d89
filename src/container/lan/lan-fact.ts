/**
 * LanFact: whoever asks at an entry of `listen`, as one more container, so that tail, explain and failures can name it: on no network,
 * or on the one whose view the entry has.
 */
import { isIPv4 } from "node:net";

import { type ListenEntry, listenId } from "../../base/model/listen-policy.ts";
import type { ContainerFact, NetworkFact } from "../facts/fact.ts";
import { outsiderEndpoint, outsiderFact } from "../facts/outsider.ts";

export function lanFact({ name }: ListenEntry): ContainerFact {
  return outsiderFact({ id: listenId(name), networkMode: "host", endpoints: [] });
}

/** It reaches the network's containers by way of the host, whose addresses are its gateways. */
export function lanFactOn(entry: ListenEntry, network: NetworkFact): ContainerFact {
  const fact = lanFact(entry);
  const place = {
    networkId: network.id,
    networkName: network.name,
    ipv4Gateway: entry.addresses.find((each) => isIPv4(each)),
    ipv6Gateway: entry.addresses.find((each) => !isIPv4(each)),
  };
  return { ...fact, endpoints: [outsiderEndpoint(fact.id, place)] };
}
