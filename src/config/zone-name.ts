/**
 * ZoneName: the names of zones for the service schema. A zone answers for everything below it, so one that belongs to
 * others, or to another part of dns11, is refused.
 */
import { domainLabels, parseDomain } from "../base/model/server-text.ts";
import { problemOf } from "../base/model/extra-name.ts";

/** Room for HOST.SERVICE.PROJECT.svc in front of it. */
const ZONE_CHARS = 100;
/** Special names (RFC 6761), multicast DNS as a whole, and reverse names. */
const TAKEN = /(^|\.)(localhost|invalid|onion|alt|arpa|resolver\.arpa)$|^local$/;
/** Reverse zones. */
const REVERSE = /\.(in-addr|ip6)\.arpa$/;
/** Below which registries sell domains: `co.uk`, `com.au`. */
const REGISTRY = /^(ac|co|com|edu|gob|gouv|gov|ltd|me|mil|ne|net|nom|or|org|plc|sch)\.[a-z]{2}$/;

/** Why a zone cannot be served, with what to use instead; undefined if it can. */
export function zoneProblem(text: string): string | undefined {
  const zone = zoneName(text);
  if (zone === undefined || zone === "" || zone.length > ZONE_CHARS)
    return `use a domain name of at most ${ZONE_CHARS} characters, such as cluster.local`;
  if (TAKEN.test(zone)) return "use a domain without a meaning of its own, such as cluster.local";
  if (problemOf(`*.${zone}`) === undefined && !REGISTRY.test(zone)) return undefined;
  return `use a domain that is yours, such as docker.${zone}, because this one would hide a public domain`;
}

/** A zone in lower case, without a final dot; undefined if it is no domain name. */
export function zoneName(text: string): string | undefined {
  // `parseDomain` reads "*.x" as x.
  if (/^[*.]/.test(text)) return undefined;
  try {
    return parseDomain(text);
  } catch {
    return undefined;
  }
}

/** Reads the domain of names that are in a store or a cluster; reverse zones are among them. `quote` is for the error. */
export function readZoneName(value: unknown, quote: (value: unknown) => string): string {
  const text = typeof value === "string" ? value : "";
  const name = zoneName(text) ?? "";
  if (REVERSE.test(name) && domainLabels(parseDomain(name)).length > 0) return name;
  const problem = zoneProblem(text)?.replace("cluster.local", "services.test");
  if (problem !== undefined) throw new Error(`invalid zone ${quote(value)}: ${problem}`);
  return name;
}

/** A domain with names of another kind, and the key that says which. */
export interface KeptDomain {
  readonly key: string;
  readonly domain: string;
}

/** What is wrong with a zone that overlaps such a domain; undefined for one that overlaps none. */
export function overlapText(zone: string, kept: readonly KeptDomain[]): string | undefined {
  const other = kept.find(({ domain }) => isNested(domain, zone));
  return other && `"${zone}" overlaps ${other.key} "${other.domain}": change one of them`;
}

/** Whether one domain is the other, or is below it. */
export function isNested(one: string, other: string): boolean {
  return `.${one}`.endsWith(`.${other}`) || `.${other}`.endsWith(`.${one}`);
}
