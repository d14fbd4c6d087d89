/**
 * ServerLines: the nameservers in a dnsmasq folder, as the routes of the setting `dns`.
 */
import { presentation } from "../../base/dns/name.ts";
import { LIMITS } from "../../base/limits.ts";
import { addressBytes, reverseLabels } from "../../base/model/address.ts";
import { type RouteText, parseDomain, parseServer } from "../../base/model/server-text.ts";
import { quoteValue } from "../../config/kinds.ts";
import type { OptionLine } from "./option-lines.ts";

interface DomainServers {
  readonly where: string;
  readonly servers: RouteText["servers"][number][];
  /** It has the servers for every name, too. */
  usesStandard: boolean;
}

/** Where dnsmasq takes the servers for every name from. */
interface StandardServers {
  readonly usesHost: boolean;
}

const ANY = "";
const BITS = { v4: 32, v6: 128 } as const;

export class ServerLines {
  readonly #byDomain = new Map<string, DomainServers>();

  /** `server=` and `local=`. Throws an Error that says what to use. */
  add({ parts, where }: OptionLine): void {
    const { domains, rest } = domainsIn(parts.join(","));
    this.#put(domains ?? [ANY], rest, where);
  }

  /** `rev-server=ADDRESS[/PREFIX],SERVER`. */
  addReverse({ parts, where }: OptionLine): void {
    const [subnet = "", server = "", ...more] = parts;
    if (more.length > 0) throw new Error("has more than a subnet and a server: remove the rest");
    this.#put([reverseDomain(subnet)], server, where);
  }

  /** `address=/DOMAIN/` without an address: nothing below the domain exists. */
  deny(domains: readonly string[], where: string): void {
    this.#put(domains, "", where);
  }

  /** The routes; undefined where the folder says nothing about servers. `#` means the servers for every name. */
  routes({ usesHost }: StandardServers): readonly RouteText[] {
    const standard = [...(usesHost ? (["host"] as const) : []), ...(this.#byDomain.get(ANY)?.servers ?? [])];
    const domains = [...this.#byDomain].filter(([domain]) => domain !== ANY);
    return [
      { domains: [ANY], servers: standard, isLocal: standard.length === 0 },
      ...domains.map(([domain, { servers, usesStandard }]) => {
        const all = [...servers, ...(usesStandard ? standard : [])];
        return { domains: [domain], servers: all, isLocal: all.length === 0 };
      }),
    ].flatMap(({ domains: names, servers, isLocal }): RouteText[] =>
      // As they are written in the settings: one server each.
      isLocal
        ? [{ domains: names, servers, isLocal }]
        : servers.map((each) => ({ domains: names, servers: [each], isLocal })),
    );
  }

  /** The domains with servers of their own, or whose names do not exist. */
  *domains(): Iterable<{ readonly domain: string; readonly where: string; readonly isLocal: boolean }> {
    for (const [domain, { where, servers, usesStandard }] of this.#byDomain) {
      if (domain !== ANY) yield { domain, where, isLocal: servers.length === 0 && !usesStandard };
    }
  }

  get isEmpty(): boolean {
    return this.#byDomain.size === 0;
  }

  #put(domains: readonly string[], text: string, where: string): void {
    const server = text === "" || text === "#" ? undefined : serverIn(text);
    if (server === undefined && domains.includes(ANY)) throw new Error("names no server: add its address");
    for (const domain of domains) {
      const known = this.#byDomain.get(domain);
      if (known === undefined && this.#byDomain.size >= LIMITS.dnsmasqDomains) {
        throw new Error(
          `is for one of more than ${LIMITS.dnsmasqDomains} domains: to block names, use address=/NAME/# instead`,
        );
      }
      const entry = known ?? { where, servers: [], usesStandard: false };
      if (server !== undefined) entry.servers.push(server);
      if (text === "#") entry.usesStandard = true;
      this.#byDomain.set(domain, entry);
    }
  }
}

/** `/DOMAIN[/DOMAIN...]/REST`; without domains undefined. Throws an Error for a form that means something else here. */
export function domainsIn(text: string): { readonly domains: readonly string[] | undefined; readonly rest: string } {
  if (!text.startsWith("/")) return { domains: undefined, rest: text };
  const parts = text.slice(1).split("/");
  const rest = parts.pop() ?? "";
  if (parts.length === 0) throw new Error(`${quoteValue(text)} has no end of its domain: use /DOMAIN/VALUE`);
  return { domains: parts.map((part) => domainIn(part)), rest };
}

function domainIn(text: string): string {
  if (text === "") throw new Error("an empty domain (names without a dot) is not supported: use domain-needed");
  if (text === "#") throw new Error("# for every domain is not supported: name the domains");
  if (text.includes("*")) throw new Error(`${quoteValue(text)}: a wildcard is not supported: name the domain`);
  return parseDomain(text);
}

function serverIn(text: string): RouteText["servers"][number] {
  if (text.includes("@")) {
    throw new Error(`${quoteValue(text)}: an interface or source address (@) is not supported: leave it out`);
  }
  const [address = ""] = text.split(/[#%]/);
  if (addressBytes(address) === undefined) {
    throw new Error(`${quoteValue(text)} is not the address of a server: use IP or IP#PORT`);
  }
  return parseServer(text);
}

function reverseDomain(subnet: string): string {
  const [text = "", prefixText] = subnet.split("/", 2);
  const address = addressBytes(text);
  if (address === undefined) throw new Error(`${quoteValue(subnet)} is not a subnet: use ADDRESS/PREFIX`);
  const [bits, step, zone] = address.length === 4 ? [BITS.v4, 8, "in-addr.arpa"] : [BITS.v6, 4, "ip6.arpa"];
  const prefix = prefixText === undefined ? bits : Number(prefixText);
  if (!Number.isInteger(prefix) || prefix < step || prefix > bits || prefix % step !== 0) {
    throw new Error(`${quoteValue(subnet)}: the prefix ends within a label: use a multiple of ${step}`);
  }
  const labels = reverseLabels(address);
  const all = presentation(labels, 0, labels.length).split(".");
  return [...all.slice((bits - prefix) / step), zone].join(".");
}
