/**
 * ListedServers: the servers that Docker would query for a container.
 */
import { isSameAddress } from "../../base/model/address.ts";
import { isListenerAddress } from "../../base/model/listener-addresses.ts";
import { DNS_PORT } from "../../base/model/server-text.ts";
import type { Server } from "../../base/model/view.ts";
import type { NameserversFact } from "../facts/fact.ts";

interface ListedServersParts {
  readonly host: readonly Server[];
  /** Docker's resolver, where only Docker knows; that very list is returned then. */
  readonly dockerServers: readonly Server[];
  /** dns11's own: as servers of a container they would be a forwarding loop. */
  readonly ownAddresses: readonly string[];
  /** How many servers of Docker's list are used. */
  readonly serversMax: number;
}

export function listedServers(
  nameservers: NameserversFact,
  { host, dockerServers, ownAddresses, serversMax }: ListedServersParts,
): readonly Server[] {
  if (nameservers.kind === "unknown") return dockerServers;
  // Without host servers, engines up to 27 still have servers of their own.
  if (nameservers.kind === "host") return host.length > 0 ? host : dockerServers;
  const servers =
    nameservers.kind === "captured"
      ? nameservers.servers.map((address) => ({ from: "container" as const, address }))
      : nameservers.servers;
  const usable = servers.filter(
    ({ from, address }) => from === "host" || !ownAddresses.some((own) => isSameAddress(address, own)),
  );
  const listener = usable.find(({ address }) => isListenerAddress(address));
  return usable
    .flatMap((server) => {
      if (isListenerAddress(server.address)) return server === listener ? host : [];
      return [{ ...server, port: DNS_PORT }];
    })
    .slice(0, serversMax);
}
