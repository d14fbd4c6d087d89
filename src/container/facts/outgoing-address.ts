import type { ContainerFact, EndpointFact } from "./fact.ts";

/** The address that a container leaves its networks with: that on the network of its default gateway, as Docker chooses it. */
export function outgoingAddress({ endpoints, onDefaultBridge }: ContainerFact): string | undefined {
  const inOrder = endpoints.toSorted(
    (a, b) =>
      b.gatewayPriority - a.gatewayPriority ||
      Number(b.ipv4Gateway !== undefined) - Number(a.ipv4Gateway !== undefined) ||
      gateways(b) - gateways(a) ||
      Buffer.compare(Buffer.from(a.networkName), Buffer.from(b.networkName)),
  );
  const addresses = [...inOrder, ...(onDefaultBridge === undefined ? [] : [onDefaultBridge])];
  return (
    addresses.find(({ ipv4 }) => ipv4 !== undefined)?.ipv4 ?? addresses.find(({ ipv6 }) => ipv6 !== undefined)?.ipv6
  );
}

function gateways({ ipv4Gateway, ipv6Gateway }: EndpointFact): number {
  return Number(ipv4Gateway !== undefined) + Number(ipv6Gateway !== undefined);
}
