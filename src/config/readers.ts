/**
 * Readers: validate the value of each key, whether it comes from a flag, the environment or the settings file. A reader
 * throws an Error that quotes the value and says what to use (`...: use ...`), which the manual and shell completion parse.
 */
import {
  HOST_DOCKER_INTERNAL_WORDS,
  NODE_ADDRESS_WORDS,
  NODE_FAMILIES,
  KIND_MODES,
  type NodeFilter,
  ROUTE_LOCALNET_SCOPES,
} from "../base/model/kind-policy.ts";
import { DEFAULT_BRIDGE_SETTINGS } from "../base/model/default-bridge-setting.ts";
import { HOST_NAME_SETTINGS } from "../base/model/host-name-setting.ts";
import { HOST_MEANS } from "../base/model/host-policy.ts";
import { QUERY_NAMES } from "../base/model/query-record.ts";
import { addressBytes } from "../base/model/address.ts";
import { HEALTH_POLICIES } from "../base/model/health-policy.ts";
import { LABEL_SERVERS } from "../base/model/label-policy.ts";
import { ADDRESS_ORDERS, PTR_FORMS } from "../base/model/name-choices.ts";
import { STOPPED_POLICIES } from "../base/model/stopped-policy.ts";
import { VISIBLE_SETTINGS } from "../base/model/visible-setting.ts";
import { RULE_BACKEND_SETTINGS } from "../base/model/rule-backend.ts";
import { parseDomain, parseRoute } from "../base/model/server-text.ts";
import { MISSING_CONTAINER_SETTINGS, SERVER_ORDERS } from "../base/model/upstream-policy.ts";
import { LOG_FORMATS, LOG_LEVELS } from "../base/model/log-choices.ts";
import { parseDnsOption } from "./dns-option.ts";
import { LIMITS } from "../base/limits.ts";
import { NODE_FILTER_FORMS, parseNodeFilter } from "./node-filter.ts";
import { ONLY_FORMS, type OnlyFilter, parseOnly } from "../base/model/only.ts";
import { durationText, parseDuration, parseSize, sizeText } from "../base/lib/quantity.ts";
import { ANSWERS_SETTINGS } from "../base/model/answered-by.ts";
import { METRICS_OFF } from "../base/model/metrics-policy.ts";
import { successorOfValue } from "./retired-names.ts";
import {
  readEndpoint,
  readEtcdZone,
  readMachine,
  readMachineAddress,
  readNetworkName,
  readPrefix,
  readQuirk,
  readUser,
} from "./etcd-values.ts";
import { zoneName, zoneProblem } from "./zone-name.ts";
import { CAPABILITY_SETTINGS, KEEPER_SETTINGS } from "./settings.ts";

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
const KIB = 1024;
const GIB = 1024 ** 3;

export const READERS = {
  "log-level": oneOf(LOG_LEVELS),
  "log-format": oneOf(LOG_FORMATS),
  "metrics.addr": readMetricsAddress,
  "metrics.containers": count(0, LIMITS.meteredContainersMax),
  "lame-duck": duration(0, MINUTE_MS, 1),
  capabilities: oneOf(CAPABILITY_SETTINGS, "capabilities"),
  keeper: oneOf(KEEPER_SETTINGS),
  answers: oneOf(ANSWERS_SETTINGS),
  strict: readBoolean,
  "rule-backend": oneOf(RULE_BACKEND_SETTINGS),
  /** One filter. */
  only: readFilter,
  "label-servers": oneOf(LABEL_SERVERS),
  health: oneOf(HEALTH_POLICIES),
  stopped: oneOf(STOPPED_POLICIES),
  ptr: oneOf(PTR_FORMS),
  "address-order": oneOf(ADDRESS_ORDERS),
  visible: oneOf(VISIBLE_SETTINGS),
  "default-bridge": oneOf(DEFAULT_BRIDGE_SETTINGS),
  "host-docker-internal": oneOf(HOST_NAME_SETTINGS),
  /** One zone. */
  zone: readZone,
  ttl: duration(0, 7 * DAY_MS, SECOND_MS),
  /** One server or route. */
  dns: (value: unknown) => parseRoute(readText(value)),
  /** One option. */
  "dns-opt": (value: unknown) => parseDnsOption(readText(value)),
  "resolv-conf": pathLike("/etc/resolv.conf"),
  "host-names": oneOf(HOST_MEANS),
  "host-domain": readHostDomain,
  "records-dir": pathLike("/etc/dns11/records"),
  "forward.order": oneOf(SERVER_ORDERS, "forward.order"),
  "forward.budget": duration(100, MINUTE_MS, 1),
  "forward.max-concurrent": count(1, LIMITS.forwardQueriesShared),
  "forward.missing-container": oneOf(MISSING_CONTAINER_SETTINGS),
  "cache.size": size(64 * KIB, 4 * GIB),
  "cache.min-ttl": duration(0, DAY_MS, SECOND_MS),
  "cache.max-ttl": duration(SECOND_MS, 7 * DAY_MS, SECOND_MS),
  "cache.max-negative-ttl": duration(0, DAY_MS, SECOND_MS),
  "cache.negative-ttl-without-soa": duration(0, HOUR_MS, SECOND_MS),
  "cache.max-stale": duration(0, 7 * DAY_MS, SECOND_MS),
  /** One filter. */
  "kind.nodes": readNodeFilter,
  "kind.ip": wordOrAddress(NODE_ADDRESS_WORDS, "cannot be reached from pods"),
  "kind.mode": oneOf(KIND_MODES),
  "kind.families": oneOf(NODE_FAMILIES),
  "kind.route-localnet": oneOf(ROUTE_LOCALNET_SCOPES),
  "kind.host-docker-internal": wordOrAddress(
    HOST_DOCKER_INTERNAL_WORDS,
    "is the pod itself in each pod",
    "kind.host-docker-internal",
  ),
  "queries.names": oneOf(QUERY_NAMES),
  /** One of each. */
  "etcd.endpoints": (value: unknown) => readEndpoint(value, quoteValue),
  "etcd.zones": (value: unknown) => readEtcdZone(value, quoteValue),
  "etcd.quirks": (value: unknown) => readQuirk(value, quoteValue),
  "etcd.prefix": (value: unknown) => readPrefix(value, quoteValue),
  "etcd.ca": pathLike("/etc/dns11/etcd-ca.pem"),
  "etcd.user": (value: unknown) => readUser(value, quoteValue),
  "etcd.password-file": pathLike("/etc/dns11/etcd-password"),
  "etcd.max-stale": duration(0, 7 * DAY_MS, SECOND_MS),
  "etcd.machine": (value: unknown) => readMachine(value, quoteValue),
  "etcd.address": (value: unknown) => readMachineAddress(value, quoteValue),
  "etcd.routed-networks": (value: unknown) => readNetworkName(value, quoteValue),
  "etcd.lease": duration(10 * SECOND_MS, 10 * MINUTE_MS, SECOND_MS),
} as const;

const SHOWN_MAX = 60;
const PORT_MAX = 65_535;
const DURATION_EXAMPLES = ["250ms", "30s", "5m"];

/** The value as it is quoted in an error. */
export function quoteValue(value: unknown): string {
  if (Array.isArray(value)) return "(a list)";
  if (typeof value === "object" && value !== null) return "(a map)";
  const text = typeof value === "string" ? JSON.stringify(value) : String(value);
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}...` : text;
}

export function readBoolean(value: unknown): boolean {
  if (typeof value === "boolean") return value;
  throw new Error(`invalid value ${quoteValue(value)}: use true or false`);
}

function readText(value: unknown): string {
  if (typeof value === "string") return value;
  throw new Error(`invalid value ${quoteValue(value)}: use a string`);
}

function readFilter(value: unknown): OnlyFilter {
  const filter = parseOnly(readText(value));
  if (filter === undefined) throw new Error(`invalid filter ${quoteValue(value)}: use ${ONLY_FORMS}`);
  return filter;
}

function readNodeFilter(value: unknown): NodeFilter {
  const filter = parseNodeFilter(readText(value));
  if (filter === undefined) throw new Error(`invalid node filter ${quoteValue(value)}: use ${NODE_FILTER_FORMS}`);
  return filter;
}

const LOOPBACK = /^127\.|^::1?$|^0\./;

/** One of the words, or an IP address that is the same from everywhere: neither link-local nor loopback. */
function wordOrAddress(words: readonly string[], why: string, key?: string): (value: unknown) => string {
  return (value) => {
    const text = readText(value);
    if (words.includes(text)) return text;
    rejectRetired(key, value);
    if (addressBytes(text) === undefined || text.includes("%")) {
      throw new Error(`invalid value ${quoteValue(value)}: use one of ${words.join(", ")} or an IP address`);
    }
    if (LOOPBACK.test(text)) throw new Error(`invalid address ${quoteValue(value)}: a loopback address ${why}`);
    return text;
  };
}

/** An IP address and a port, or off. Host names are refused: they could resolve to another address later. */
function readMetricsAddress(value: unknown): string {
  const text = readText(value);
  if (text === METRICS_OFF) return text;
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text) ?? [];
  const address = bracketed ?? plain ?? "";
  const isAddress = addressBytes(address) !== undefined && address.includes(":") === (bracketed !== undefined);
  if (isAddress && !address.includes("%") && Number(port) <= PORT_MAX) return text;
  throw new Error(`invalid address ${quoteValue(value)}: use IP:PORT, such as 127.0.0.1:9511 or [::1]:9511, or off`);
}

/** Domains that have another meaning on every machine: names of this machine, multicast DNS, reverse names. */
const TAKEN_DOMAIN = /(^|\.)(localhost|local|arpa|invalid|onion)$/;
/** Redirect rules compare up to 128 bytes. */
const HOST_DOMAIN_CHARS = 100;

function readHostDomain(value: unknown): string {
  const domain = parseDomain(readText(value));
  if (domain === "" || domain.length > HOST_DOMAIN_CHARS)
    throw new Error(
      `invalid domain ${quoteValue(value)}: use a domain name of at most ${HOST_DOMAIN_CHARS} characters`,
    );
  if (!TAKEN_DOMAIN.test(domain)) return domain;
  throw new Error(`invalid domain ${quoteValue(value)}: use one without a meaning of its own, such as docker`);
}

function readZone(value: unknown): string {
  const text = readText(value);
  const problem = zoneProblem(text);
  if (problem !== undefined) throw new Error(`invalid zone ${quoteValue(value)}: ${problem}`);
  return zoneName(text) ?? "";
}

/** An absolute path; the example is part of the error, and of the documents. */
function pathLike(example: string): (value: unknown) => string {
  return (value) => {
    const path = readText(value);
    if (path.startsWith("/") && !path.includes("\0")) return path;
    throw new Error(`invalid path ${quoteValue(value)}: use an absolute path, such as ${example}`);
  };
}

function oneOf<T extends string>(words: readonly T[], key?: string): (value: unknown) => T {
  return (value) => {
    const word = words.find((each) => each === value);
    if (word !== undefined) return word;
    rejectRetired(key, value);
    throw new Error(`invalid value ${quoteValue(value)}: use one of ${words.join(", ")}`);
  };
}

function rejectRetired(key: string | undefined, value: unknown): void {
  const successor = key === undefined ? undefined : successorOfValue(key, value);
  if (successor !== undefined) throw new Error(`${quoteValue(value)} is now ${JSON.stringify(successor)}`);
}

function duration(minMs: number, maxMs: number, stepMs: number): (value: unknown) => number {
  const isValid = (ms: number | undefined): ms is number =>
    ms !== undefined && ms >= minMs && ms <= maxMs && ms % stepMs === 0;
  return (value) => {
    const ms = typeof value === "string" || typeof value === "number" ? parseDuration(value) : undefined;
    if (isValid(ms)) return ms;
    const kind = stepMs === SECOND_MS ? "whole seconds" : "a time";
    const range = `${kind} from ${durationText(minMs)} to ${durationText(maxMs)}`;
    const examples = DURATION_EXAMPLES.filter((example) => isValid(parseDuration(example))).join(" or ");
    throw new Error(`invalid duration ${quoteValue(value)}: use ${range}, such as ${examples}`);
  };
}

function size(minBytes: number, maxBytes: number): (value: unknown) => number {
  return (value) => {
    const bytes = typeof value === "string" || typeof value === "number" ? parseSize(value) : undefined;
    if (bytes !== undefined && bytes >= minBytes && bytes <= maxBytes) return bytes;
    const range = `${sizeText(minBytes)} to ${sizeText(maxBytes)}`;
    throw new Error(`invalid size ${quoteValue(value)}: use a size from ${range}, such as 32MiB`);
  };
}

function count(min: number, max: number): (value: unknown) => number {
  return (value) => {
    if (typeof value === "number" && Number.isInteger(value) && value >= min && value <= max) return value;
    throw new Error(`invalid number ${quoteValue(value)}: use a whole number from ${min} to ${max}`);
  };
}
