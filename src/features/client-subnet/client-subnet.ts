import { addressBytes } from "../../base/model/address.ts";
import { OPTION } from "../../base/dns/opt.ts";
import type { Server } from "../../base/model/view.ts";
import { type ContainerFact, outgoingAddress } from "../../container/facts/fact.ts";
import type { Client } from "../../query/client/client.ts";
import type { Disclosure } from "../../query/tap.ts";
import type { RunCore, Running } from "../contract.ts";
import { subnetServers, serverName } from "./feature.ts";

const IPV4 = 1;
const IPV6 = 2;
const NOTHING = new Uint8Array(0);

export function open({ settings, observe }: RunCore): Running {
  const subnets = new ClientSubnets();
  observe({
    open: (containerId, client) => {
      subnets.open(containerId, client);
      return undefined;
    },
    close: () => undefined,
  });
  return {
    start: () => subnets.setServers(subnetServers(settings)),
    configure: (next) => subnets.setServers(subnetServers(next)),
    put: (fact) => subnets.put(fact),
    remove: (containerId) => subnets.remove(containerId),
  };
}

/** What the query side needs to be told of a client. */
type SubnetClient = Pick<Client, "disclosure" | "repeater" | "onClose">;

/** Which servers are told, and what they are told of each open client. */
export class ClientSubnets {
  #servers: ReadonlySet<string> = new Set();
  /** Those of running containers. */
  readonly #addresses = new Map<string, string>();
  readonly #clients = new Map<string, Set<SubnetClient>>();

  /** The former answers are not those of these servers. */
  setServers(servers: readonly string[]): void {
    if (servers.length === this.#servers.size && servers.every((each) => this.#servers.has(each))) return;
    this.#servers = new Set(servers);
    for (const containerId of this.#clients.keys()) this.#disclose(containerId);
  }

  open(containerId: string, client: SubnetClient): void {
    const clients = this.#clients.get(containerId) ?? new Set();
    this.#clients.set(containerId, clients.add(client));
    client.onClose(() => {
      clients.delete(client);
      if (clients.size === 0 && this.#clients.get(containerId) === clients) this.#clients.delete(containerId);
    });
    client.disclosure = this.#disclosureOf(containerId);
  }

  put(fact: ContainerFact): void {
    const address = outgoingAddress(fact);
    if (address === this.#addresses.get(fact.id)) return;
    if (address === undefined) this.#addresses.delete(fact.id);
    else this.#addresses.set(fact.id, address);
    if (this.#servers.size > 0) this.#disclose(fact.id);
  }

  remove(containerId: string): void {
    this.#addresses.delete(containerId);
  }

  #disclose(containerId: string): void {
    const disclosure = this.#disclosureOf(containerId);
    for (const client of this.#clients.get(containerId) ?? []) {
      client.disclosure = disclosure;
      client.repeater?.forget();
    }
  }

  #disclosureOf(containerId: string): Disclosure | undefined {
    if (this.#servers.size === 0) return undefined;
    const servers = this.#servers;
    const option = subnetOption(this.#addresses.get(containerId));
    return {
      optionFor: (server) => (isAsked(server) && servers.has(serverName(server)) ? option : undefined),
    };
  }
}

/** Docker's resolver, and servers inside of a node, are not meant by their addresses. */
function isAsked({ from }: Server): boolean {
  return from === "host" || from === "container";
}

/** EDNS client subnet with the whole address (RFC 7871). Empty if the address is not known. */
export function subnetOption(address: string | undefined): Uint8Array {
  const bytes = address === undefined ? undefined : addressBytes(address);
  if (bytes === undefined) return NOTHING;
  const family = bytes.length === 4 ? IPV4 : IPV6;
  return Uint8Array.of(0, OPTION.CLIENT_SUBNET, 0, 4 + bytes.length, 0, family, bytes.length * 8, 0, ...bytes);
}
