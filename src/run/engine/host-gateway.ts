/** The host's side of a bridge, as the engine describes the network. */

/** An engine that has just started may not report the gateway of the bridge: it is the first address. */
export function gatewayOf({ Gateway: gateway, Subnet: subnet }: { Gateway?: string; Subnet?: string }): string[] {
  const address = gateway ?? /^(\d+\.\d+\.\d+)\.0\//.exec(subnet ?? "")?.[1]?.concat(".1");
  // Some engines write it with the length of the prefix.
  return address === undefined ? [] : [address.replace(/\/\d+$/, "")];
}
