/**
 * LanFact: whoever asks at an entry of `listen`, as one more container, so that tail, explain and failures can name it: on no network,
 * or on the one whose view the entry has.
 */
import { type ListenEntry, listenId } from "../../base/model/listen-policy.ts";
import { isIPv4 } from "node:net";
import type { ContainerFact, NetworkFact } from "../facts/fact.ts";
import { HOST_FACT } from "../host/host-fact.ts";

export function lanFact({ name }: ListenEntry): ContainerFact {
  const id = listenId(name);
  return { ...HOST_FACT, id, name: id };
}

/** It reaches the network's containers by way of the host, whose addresses are its gateways. */
export function lanFactOn(entry: ListenEntry, network: NetworkFact): ContainerFact {
  const fact = lanFact(entry);
  const endpoint = {
    endpointId: fact.id,
    networkId: network.id,
    networkName: network.name,
    names: [],
    links: [],
    ipv4: undefined,
    ipv6: undefined,
    ipv4Gateway: entry.addresses.find((each) => isIPv4(each)),
    ipv6Gateway: entry.addresses.find((each) => !isIPv4(each)),
    gatewayPriority: 0,
  };
  return { ...fact, endpoints: [endpoint] };
}
