/**
 * EtcdValues: reads the values of the keys for etcd, and finds those that contradict each other.
 */
import { ETCD_QUIRKS, type EtcdPolicy, type EtcdQuirk, type PublishPolicy } from "../base/model/etcd-policy.ts";
import { isHostScoped } from "../base/model/address.ts";
import { domainLabels, parseDomain } from "../base/model/server-text.ts";
import { isNested, zoneName, zoneProblem } from "./zone-name.ts";

const URL_CHARS = 200;
const PREFIX_CHARS = 200;
const NAME_CHARS = 128;
/** Segments of characters that need no escape in a shell. */
const PREFIX = /^(\/[\w.-]+)+$/;
const REVERSE = /\.(in-addr|ip6)\.arpa$/;
const PRINTABLE = /^[!-~]+$/;
/** Room for a host name in front of it in one label. */
const MACHINE = /^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$/;

/** Quotes a value in an error. */
type Quote = (value: unknown) => string;

/** The URL of a member, without a path. */
export function readEndpoint(value: unknown, quote: Quote): string {
  const problem = `invalid endpoint ${quote(value)}: use the client URL of a member, such as http://10.0.0.5:2379`;
  if (typeof value !== "string" || value.length > URL_CHARS || !/^https?:\/\/[^/]/.test(value))
    throw new Error(problem);
  let url: URL;
  try {
    url = new URL(value);
  } catch {
    throw new Error(problem);
  }
  if (url.username !== "" || url.password !== "")
    throw new Error(`invalid endpoint: use etcd.user and etcd.password-file, not a user in the URL`);
  if (url.pathname !== "/" || url.search !== "" || url.hash !== "") throw new Error(problem);
  return url.origin;
}

export function readPrefix(value: unknown, quote: Quote): string {
  const prefix = typeof value === "string" ? value.replace(/\/$/, "") : "";
  if (prefix.length <= PREFIX_CHARS && PREFIX.test(prefix)) return prefix;
  throw new Error(
    `invalid prefix ${quote(value)}: use a slash and a word, or several, such as /skydns or /dns/production`,
  );
}

/** A domain, a reverse zone among them. */
export function readEtcdZone(value: unknown, quote: Quote): string {
  const text = typeof value === "string" ? value : "";
  const name = zoneName(text) ?? "";
  if (REVERSE.test(name) && domainLabels(parseDomain(name)).length > 0) return name;
  const problem = zoneProblem(text)?.replace("cluster.local", "services.test");
  if (problem !== undefined) throw new Error(`invalid zone ${quote(value)}: ${problem}`);
  return name;
}

export function readUser(value: unknown, quote: Quote): string {
  if (typeof value === "string" && value.length <= NAME_CHARS && PRINTABLE.test(value)) return value;
  throw new Error(`invalid user ${quote(value)}: use the name of a user of etcd, without spaces`);
}

export function readQuirk(value: unknown, quote: Quote): EtcdQuirk {
  const quirk = ETCD_QUIRKS.find((each) => each === value);
  if (quirk !== undefined) return quirk;
  throw new Error(`invalid value ${quote(value)}: use one of ${ETCD_QUIRKS.join(", ")}`);
}

/** One label of a name. */
export function readMachine(value: unknown, quote: Quote): string {
  const label = typeof value === "string" ? value.toLowerCase() : "";
  if (MACHINE.test(label)) return label;
  throw new Error(`invalid machine ${quote(value)}: use letters, digits and "-", at most 32, such as node-1`);
}

/** The name of this machine: as set, or its host name; undefined if that is none. */
export function machineNameOf({ machine }: PublishPolicy, hostName: string): string | undefined {
  if (machine !== undefined) return machine;
  const label = hostName.toLowerCase().split(".", 1)[0] ?? "";
  return MACHINE.test(label) ? label : undefined;
}

/** An address that means this machine on all others. */
export function readMachineAddress(value: unknown, quote: Quote): string {
  if (typeof value === "string" && !value.includes("%") && !isHostScoped(value)) return value;
  throw new Error(`invalid address ${quote(value)}: use an IP address of this machine that other machines reach`);
}

export function readNetworkName(value: unknown, quote: Quote): string {
  if (typeof value === "string" && value.length <= NAME_CHARS && PRINTABLE.test(value)) return value;
  throw new Error(`invalid network ${quote(value)}: use the name of a network, as docker network ls prints it`);
}

const NO_ENDPOINTS = "has no effect without etcd.endpoints: set the client URLs of etcd, or remove this setting";

/** The keys whose values contradict others, each with what to do. */
export function etcdConflicts(
  etcd: EtcdPolicy,
  others: { readonly zones: readonly string[]; readonly hostDomain: string | undefined },
): readonly (readonly [`etcd.${string}`, string])[] {
  const { endpoints, zones, ca, user, passwordFile, publish } = etcd;
  if (endpoints.length === 0) {
    const isSet = { zones: zones.length > 0, publish, user, "password-file": passwordFile, ca };
    const first = Object.entries(isSet).find(([, value]) => value !== undefined && value !== false);
    return first === undefined ? [] : [[`etcd.${first[0]}`, NO_ENDPOINTS]];
  }
  const hosts = new Set(endpoints);
  return [
    ...(zones.length > 0 || publish !== undefined
      ? []
      : [need("etcd.endpoints", "etcd.zones: list the domains whose names are in etcd")]),
    ...(publish === undefined ? [] : publishConflicts(publish, others.zones)),
    ...(hosts.size === endpoints.length ? [] : [twice]),
    ...(passwordFile === undefined && user !== undefined
      ? [need("etcd.user", "etcd.password-file: set the file with the user's password")]
      : []),
    ...(passwordFile !== undefined && user === undefined
      ? [need("etcd.password-file", "etcd.user: set the user whose password it is")]
      : []),
    ...(ca !== undefined && endpoints.every((each) => each.startsWith("http:")) ? [plainCa] : []),
    ...zones.flatMap((zone, index) => overlaps(zone, zones.slice(0, index), others)),
  ];
}

function publishConflicts({ zone, addresses }: PublishPolicy, zones: readonly string[]): Conflict[] {
  const families = new Set(addresses.map((each) => each.includes(":")));
  return [
    ...(zone !== "" && zones.includes(zone)
      ? []
      : [need("etcd.publish", "zone: set the zone that the machines share, such as cluster.local")]),
    ...(families.size === addresses.length
      ? []
      : [["etcd.address", "lists two addresses of one family: use one of IPv4, one of IPv6, or both"] as const]),
  ];
}

type Conflict = readonly [`etcd.${string}`, string];

const twice: Conflict = ["etcd.endpoints", "lists an endpoint twice: remove one of them"];
const plainCa: Conflict = ["etcd.ca", "has no effect, because no endpoint is https: remove it, or use https endpoints"];

function need(key: `etcd.${string}`, what: string): Conflict {
  return [key, `needs ${what}`];
}

function overlaps(
  zone: string,
  before: readonly string[],
  { zones, hostDomain }: { readonly zones: readonly string[]; readonly hostDomain: string | undefined },
): Conflict[] {
  const nested = [...before, ...zones].find((each) => isNested(each, zone));
  if (nested !== undefined)
    return [["etcd.zones", `"${zone}" and the zone "${nested}" are the same or nested: remove one of them`]];
  if (hostDomain === undefined || !isNested(hostDomain, zone)) return [];
  return [["etcd.zones", `"${zone}" overlaps host-domain "${hostDomain}": change one of them`]];
}
