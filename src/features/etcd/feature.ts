import { isHostScoped } from "../../base/model/address.ts";
import { NOT_WITH_STRICT, type WithFeatures } from "../../config/feature-entry.ts";
import { BOOLEAN, duration, path, quoting } from "../../config/kinds.ts";
import { featureValues, list, one } from "../../config/setting.ts";
import type { Settings } from "../../config/settings.ts";
import { type KeptDomain, isNested, overlapText, readZoneName } from "../../config/zone-name.ts";

const URL_CHARS = 200;
const PREFIX_CHARS = 200;
const NAME_CHARS = 128;
/** Segments of characters that need no escape in a shell. */
const PREFIX = /^(\/[\w.-]+)+$/;
const PRINTABLE = /^[!-~]+$/;
/** Room for a host name in front of it in one label. */
const MACHINE = /^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$/;

/** Quotes a value in an error. */
type Quote = (value: unknown) => string;

/**
 * What CoreDNS does with records and dns11 does not, unless it is asked to. `subtree`: a name answers with all records
 * below it. `text-only`: a record with a text has no CNAME.
 */
const ETCD_QUIRKS = ["subtree", "text-only"] as const;
export type EtcdQuirk = (typeof ETCD_QUIRKS)[number];

export interface EtcdPolicy {
  /** URLs of the members; none: etcd is not used. */
  readonly endpoints: readonly string[];
  /** The first part of all keys, with a slash in front and none at its end. */
  readonly prefix: string;
  /** The domains whose names are in etcd. */
  readonly zones: readonly string[];
  /** The file with the certificates of the authority that has signed the members' certificates. */
  readonly ca: string | undefined;
  readonly user: string | undefined;
  readonly passwordFile: string | undefined;
  /** How long records are answered that etcd has not confirmed. */
  readonly staleSecondsMax: number;
  readonly quirks: readonly EtcdQuirk[];
  /** Undefined: nothing is written to etcd. */
  readonly publish: PublishPolicy | undefined;
}

/** How the containers of this machine are published for others. */
export interface PublishPolicy {
  /** The zone that the machines share: the first of the setting `zone`. */
  readonly zone: string;
  /** The label that names this machine; undefined: the host name of the engine. */
  readonly machine: string | undefined;
  /**
   * Other machines reach published ports at these, at most one of each family; without any, at the address from which
   * this machine connects to etcd.
   */
  readonly addresses: readonly string[];
  /** Networks whose container addresses other machines reach. */
  readonly routedNetworks: readonly string[];
  readonly leaseSeconds: number;
  /** Members on this machine come first in answers. */
  readonly isNearestFirst: boolean;
}

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const LEASE_MS = 30_000;
const isOneOrMore = true;

const settings = {
  "etcd.endpoints": list(quoting(readEndpoint), "client URLs of an etcd cluster whose records containers resolve", {
    isOneOrMore,
  }),
  "etcd.prefix": one(quoting(readPrefix), "/skydns", "first part of the keys of all records"),
  "etcd.zones": list(
    quoting(readZoneName),
    "domains whose names are in etcd, also reverse zones such as 0.10.in-addr.arpa",
    { isOneOrMore },
  ),
  "etcd.ca": one(
    path("/etc/dns11/etcd-ca.pem"),
    undefined,
    "PEM file of the authority that signed the members' certificates",
  ),
  "etcd.user": one(quoting(readUser), undefined, "user of etcd, with permission to read the keys below the prefix"),
  "etcd.password-file": one(path("/etc/dns11/etcd-password"), undefined, "file with that user's password"),
  "etcd.max-stale": one(
    duration(0, 7 * DAY_MS, SECOND_MS),
    DAY_MS,
    "how long the last known records are answered while etcd is unreachable; then queries fail",
  ),
  "etcd.quirks": list(
    quoting(readQuirk),
    "what CoreDNS does and dns11 does not: subtree (a name answers with all records below it), text-only (a record with a text is no CNAME)",
    { isOneOrMore },
  ),
  "etcd.publish": one(BOOLEAN, false, "write this machine's containers to etcd, and resolve those of other machines"),
  "etcd.machine": one(
    quoting(readMachine),
    undefined,
    "name of this machine in etcd; without it, the host name that Docker reports",
  ),
  "etcd.address": list(
    quoting(readMachineAddress),
    "addresses at which other machines reach this one's published ports; without it, the one that connects to etcd",
    { isOneOrMore },
  ),
  "etcd.routed-networks": list(
    quoting(readNetworkName),
    "networks whose containers other machines reach at their own addresses",
    { isOneOrMore },
  ),
  "etcd.lease": one(
    duration(10 * SECOND_MS, 10 * MINUTE_MS, SECOND_MS),
    LEASE_MS,
    "how long the containers of a machine are in etcd after it has failed",
  ),
  "etcd.nearest-first": one(BOOLEAN, false, "answer with a service's members on this machine first"),
};

export const ETCD = {
  settings,
  conflicts,
  domains: (all: Pick<Settings, "features">): readonly string[] => featureValues(settings, all)["etcd.zones"],
  report: async () => await import("./report.ts"),
  load: async () => await import("./etcd.ts"),
} as const;

export function etcdOf(all: Pick<Settings, "features" | "zones">): EtcdPolicy {
  const values = featureValues(settings, all);
  const [zone = ""] = all.zones;
  const publish = {
    zone,
    machine: values["etcd.machine"],
    addresses: values["etcd.address"],
    routedNetworks: values["etcd.routed-networks"],
    leaseSeconds: values["etcd.lease"] / SECOND_MS,
    isNearestFirst: values["etcd.nearest-first"],
  };
  return {
    endpoints: values["etcd.endpoints"],
    prefix: values["etcd.prefix"],
    zones: values["etcd.zones"],
    ca: values["etcd.ca"],
    user: values["etcd.user"],
    passwordFile: values["etcd.password-file"],
    staleSecondsMax: values["etcd.max-stale"] / SECOND_MS,
    quirks: values["etcd.quirks"],
    publish: values["etcd.publish"] ? publish : undefined,
  };
}

/** The URL of a member, without a path. */
function readEndpoint(value: unknown, quote: Quote): string {
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

function readPrefix(value: unknown, quote: Quote): string {
  const prefix = typeof value === "string" ? value.replace(/\/$/, "") : "";
  if (prefix.length <= PREFIX_CHARS && PREFIX.test(prefix)) return prefix;
  throw new Error(
    `invalid prefix ${quote(value)}: use a slash and a word, or several, such as /skydns or /dns/production`,
  );
}

function readUser(value: unknown, quote: Quote): string {
  if (typeof value === "string" && value.length <= NAME_CHARS && PRINTABLE.test(value)) return value;
  throw new Error(`invalid user ${quote(value)}: use the name of a user of etcd, without spaces`);
}

function readQuirk(value: unknown, quote: Quote): EtcdQuirk {
  const quirk = ETCD_QUIRKS.find((each) => each === value);
  if (quirk !== undefined) return quirk;
  throw new Error(`invalid value ${quote(value)}: use one of ${ETCD_QUIRKS.join(", ")}`);
}

/** One label of a name. */
function readMachine(value: unknown, quote: Quote): string {
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
function readMachineAddress(value: unknown, quote: Quote): string {
  if (typeof value === "string" && !value.includes("%") && !isHostScoped(value)) return value;
  throw new Error(`invalid address ${quote(value)}: use an IP address of this machine that other machines reach`);
}

function readNetworkName(value: unknown, quote: Quote): string {
  if (typeof value === "string" && value.length <= NAME_CHARS && PRINTABLE.test(value)) return value;
  throw new Error(`invalid network ${quote(value)}: use the name of a network, as docker network ls prints it`);
}

type Key = keyof typeof settings;
type Conflict = readonly [Key, string];

const HOW_TO_PUBLISH: readonly Key[] = [
  "etcd.machine",
  "etcd.address",
  "etcd.routed-networks",
  "etcd.lease",
  "etcd.nearest-first",
];
const NO_ENDPOINTS = "has no effect without etcd.endpoints: set the client URLs of etcd, or remove this setting";

function conflicts(all: Settings, { kept }: WithFeatures): readonly Conflict[] {
  const { behaviour, zones } = all;
  const etcd = etcdOf(all);
  return [
    ...(behaviour.answersAllTypes || etcd.endpoints.length === 0 ? [] : [["etcd.endpoints", NOT_WITH_STRICT] as const]),
    ...contradictions(etcd, { zones, kept }),
    ...unpublished(all),
  ];
}

function contradictions(
  etcd: EtcdPolicy,
  others: { readonly zones: readonly string[]; readonly kept: readonly KeptDomain[] },
): readonly Conflict[] {
  const { endpoints, zones, ca, user, passwordFile, publish } = etcd;
  if (endpoints.length === 0) {
    const isSet = { zones: zones.length > 0, publish, user, "password-file": passwordFile, ca };
    const first = Object.entries(isSet).find(([, value]) => value !== undefined && value !== false);
    return first === undefined ? [] : [[`etcd.${first[0]}` as Key, NO_ENDPOINTS]];
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

/** How to publish, where nothing is published. */
function unpublished(all: Settings): readonly Conflict[] {
  const values = featureValues(settings, all);
  if (values["etcd.publish"]) return [];
  const what = "has no effect without etcd.publish: set etcd.publish: true, or remove this setting";
  const isDefault = (key: Key): boolean =>
    Array.isArray(values[key]) ? values[key].length === 0 : values[key] === settings[key].fallback;
  return HOW_TO_PUBLISH.filter((key) => !isDefault(key)).map((key) => [key, what]);
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

const twice: Conflict = ["etcd.endpoints", "lists an endpoint twice: remove one of them"];
const plainCa: Conflict = ["etcd.ca", "has no effect, because no endpoint is https: remove it, or use https endpoints"];

function need(key: Key, what: string): Conflict {
  return [key, `needs ${what}`];
}

function overlaps(
  zone: string,
  before: readonly string[],
  { zones, kept }: { readonly zones: readonly string[]; readonly kept: readonly KeptDomain[] },
): Conflict[] {
  const nested = [...before, ...zones].find((each) => isNested(each, zone));
  if (nested !== undefined)
    return [["etcd.zones", `"${zone}" and the zone "${nested}" are the same or nested: remove one of them`]];
  const overlap = overlapText(zone, kept);
  return overlap === undefined ? [] : [["etcd.zones", overlap]];
}
