/**
 * UpstreamRemedy: where a server that does not answer is set, and so what to change: the container, a file of the host, or
 * the settings of dns11.
 */
import type { Server } from "../../base/model/view.ts";
import { isSameAddress } from "../../base/model/address.ts";
import { composeServiceOf } from "../../container/facts/compose.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import { DNS_LABEL } from "../../container/registry/label-routes.ts";
import type { ListedServer } from "../../container/watch/resolv-conf.ts";

interface ServerPlaces {
  /** The container that has the server; undefined for the host. */
  readonly fact: Pick<ContainerFact, "name" | "labels" | "imageLabels" | "nameservers"> | undefined;
  /** What the host's files list. */
  readonly listed: readonly ListedServer[];
  /** The settings file of a running dns11. */
  readonly settingsFile: string | undefined;
}

export function serverRemedy({ from, address }: Server, { fact, listed, settingsFile }: ServerPlaces): string {
  const own = fact === undefined ? undefined : ownRemedy(address, fact);
  if (own !== undefined) return own;
  const inFile = listed.find((each) => isSameAddress(each.address, address));
  if (from === "host" && inFile !== undefined) {
    return `Replace nameserver ${address} in line ${inFile.line} of ${inFile.file} on the Docker host.`;
  }
  if (fact?.nameservers.kind === "captured") {
    return inFile === undefined
      ? `Create ${fact.name} again with another docker run --dns.`
      : `Replace nameserver ${address} in line ${inFile.line} of ${inFile.file} on the Docker host, and restart ${fact.name}.`;
  }
  if (fact?.nameservers.kind === "listed")
    return `Replace ${address} in "dns" of dockerd (daemon.json or --dns), and start it again.`;
  return settingsFile === undefined
    ? `Replace ${address} in --dns of dns11 run, and start it again.`
    : `Replace ${address} in ${settingsFile}, then run: dns11 reload`;
}

/** If the container itself was given the server. */
function ownRemedy(address: string, fact: NonNullable<ServerPlaces["fact"]>): string | undefined {
  const { name, labels, nameservers } = fact;
  const { file, service } = composeServiceOf(fact) ?? {};
  const where = (key: string): string =>
    service === undefined ? "" : ` (services.${service}.${key} in ${file ?? "the Compose file"})`;
  if (labels[DNS_LABEL]?.includes(address) === true)
    return `Change the label ${DNS_LABEL} of ${name}${where("labels")}.`;
  if (nameservers.kind !== "listed" || !nameservers.isOwn) return undefined;
  if (!nameservers.servers.some((each) => isSameAddress(each.address, address))) return undefined;
  return service === undefined
    ? `Create ${name} again with another docker run --dns: Docker cannot change it.`
    : `Replace or remove ${address}${where("dns")}, then create the container again with docker compose up -d.`;
}

/** Without any server, each place would do; the host's file is the usual one. */
export const ADD_A_SERVER =
  "Add a nameserver to /etc/resolv.conf of the Docker host, or give the container one with docker run --dns.";
