/**
 * Readers: for each key what may be said under it, however it was said: a flag's text, the environment's, or a value of
 * the settings file. A reader throws an Error that quotes what was said and tells what is allowed.
 */
import {
  HOST_DOCKER_INTERNAL_WORDS,
  NODE_ADDRESS_WORDS,
  NODE_FAMILIES,
  KIND_MODES,
  type NodeFilter,
  ROUTE_LOCALNET_SCOPES,
} from "../base/model/kind-policy.ts";
import { QUERY_NAMES } from "../base/model/query-record.ts";
import { addressBytes } from "../base/model/address.ts";
import { LABEL_SERVERS } from "../base/model/label-policy.ts";
import { RULE_BACKEND_SETTINGS } from "../base/model/rule-backend.ts";
import { parseRoute } from "../base/model/server-text.ts";
import { SERVER_ORDERS } from "../base/model/upstream-policy.ts";
import { LOG_FORMATS, LOG_LEVELS } from "../base/log/log.ts";
import { parseDnsOption } from "./dns-option.ts";
import { LIMITS } from "../base/limits.ts";
import { NODE_FILTER_FORMS, parseNodeFilter } from "./node-filter.ts";
import { ONLY_FORMS, type OnlyFilter, parseOnly } from "../base/model/only.ts";
import { durationText, parseDuration, parseSize, sizeText } from "./quantity.ts";
import { METRICS_OFF } from "../base/model/metrics-policy.ts";
import { successorOfValue } from "./retired-names.ts";
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
  strict: readBoolean,
  "rule-backend": oneOf(RULE_BACKEND_SETTINGS),
  /** One filter. */
  only: readFilter,
  "label-servers": oneOf(LABEL_SERVERS),
  ttl: duration(0, 7 * DAY_MS, SECOND_MS),
  /** One server or route. */
  dns: (value: unknown) => parseRoute(readText(value)),
  /** One option. */
  "dns-opt": (value: unknown) => parseDnsOption(readText(value)),
  "resolv-conf": readPath,
  "forward.order": oneOf(SERVER_ORDERS, "forward.order"),
  "forward.budget": duration(100, MINUTE_MS, 1),
  "forward.max-concurrent": count(1, LIMITS.forwardQueriesShared),
  "cache.size": size(64 * KIB, 4 * GIB),
  "cache.min-ttl": duration(0, DAY_MS, SECOND_MS),
  "cache.max-ttl": duration(SECOND_MS, 7 * DAY_MS, SECOND_MS),
  "cache.max-negative-ttl": duration(0, DAY_MS, SECOND_MS),
  "cache.negative-ttl-without-soa": duration(0, HOUR_MS, SECOND_MS),
  "cache.max-stale": duration(0, 7 * DAY_MS, SECOND_MS),
  /** One filter. */
  "kind.nodes": readNodeFilter,
  "kind.ip": wordOrAddress(NODE_ADDRESS_WORDS, "pods cannot reach"),
  "kind.mode": oneOf(KIND_MODES),
  "kind.families": oneOf(NODE_FAMILIES),
  "kind.route-localnet": oneOf(ROUTE_LOCALNET_SCOPES),
  "kind.host-docker-internal": wordOrAddress(
    HOST_DOCKER_INTERNAL_WORDS,
    "in each pod is the pod itself",
    "kind.host-docker-internal",
  ),
  "queries.names": oneOf(QUERY_NAMES),
} as const;

const SHOWN_MAX = 60;
const PORT_MAX = 65_535;

/** What was said, for the person who said it. */
export function quoteValue(value: unknown): string {
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object" && value !== null) return "a map";
  const text = typeof value === "string" ? JSON.stringify(value) : String(value);
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}...` : text;
}

export function readBoolean(value: unknown): boolean {
  if (typeof value === "boolean") return value;
  throw new Error(`${quoteValue(value)} is neither true nor false`);
}

function readText(value: unknown): string {
  if (typeof value === "string") return value;
  throw new Error(`${quoteValue(value)} is no text`);
}

function readFilter(value: unknown): OnlyFilter {
  const filter = parseOnly(readText(value));
  if (filter === undefined) throw new Error(`${quoteValue(value)} is no filter: it is ${ONLY_FORMS}`);
  return filter;
}

function readNodeFilter(value: unknown): NodeFilter {
  const filter = parseNodeFilter(readText(value));
  if (filter === undefined) throw new Error(`${quoteValue(value)} names no nodes: it is ${NODE_FILTER_FORMS}`);
  return filter;
}

const LOOPBACK = /^127\.|^::1?$|^0\./;

/** An address that means the same wherever it is asked from. */
function wordOrAddress(words: readonly string[], why: string, key?: string): (value: unknown) => string {
  return (value) => {
    const text = readText(value);
    if (words.includes(text)) return text;
    rejectRetired(key, value);
    if (addressBytes(text) === undefined || text.includes("%")) {
      throw new Error(`${quoteValue(value)} is neither ${words.join(", ")} nor an IP address`);
    }
    if (LOOPBACK.test(text)) throw new Error(`${quoteValue(value)} is a loopback address, which ${why}`);
    return text;
  };
}

/** An address and a port, or none: names could mean something else tomorrow. */
function readMetricsAddress(value: unknown): string {
  const text = readText(value);
  if (text === METRICS_OFF) return text;
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text) ?? [];
  const address = bracketed ?? plain ?? "";
  const isAddress = addressBytes(address) !== undefined && address.includes(":") === (bracketed !== undefined);
  if (isAddress && !address.includes("%") && Number(port) <= PORT_MAX) return text;
  throw new Error(`${quoteValue(value)} is neither ADDRESS:PORT, such as 127.0.0.1:9511 or [::1]:9511, nor off`);
}

function readPath(value: unknown): string {
  const path = readText(value);
  if (path.startsWith("/") && !path.includes("\0")) return path;
  throw new Error(`${quoteValue(value)} is no path that begins with "/"`);
}

function oneOf<T extends string>(words: readonly T[], key?: string): (value: unknown) => T {
  return (value) => {
    const word = words.find((each) => each === value);
    if (word !== undefined) return word;
    rejectRetired(key, value);
    throw new Error(`${quoteValue(value)} is none of ${words.join(", ")}`);
  };
}

function rejectRetired(key: string | undefined, value: unknown): void {
  const successor = key === undefined ? undefined : successorOfValue(key, value);
  if (successor !== undefined) throw new Error(`${quoteValue(value)} is now ${JSON.stringify(successor)}`);
}

function duration(leastMs: number, mostMs: number, stepMs: number): (value: unknown) => number {
  return (value) => {
    const ms = typeof value === "string" || typeof value === "number" ? parseDuration(value) : undefined;
    if (ms !== undefined && ms >= leastMs && ms <= mostMs && ms % stepMs === 0) return ms;
    const whole = stepMs === SECOND_MS ? "whole seconds " : "";
    const range = `${whole}from ${durationText(leastMs)} to ${durationText(mostMs)}`;
    throw new Error(`${quoteValue(value)} is no length of time that fits: ${range}, such as 90, 90s, 5m or 1h`);
  };
}

function size(leastBytes: number, mostBytes: number): (value: unknown) => number {
  return (value) => {
    const bytes = typeof value === "string" || typeof value === "number" ? parseSize(value) : undefined;
    if (bytes !== undefined && bytes >= leastBytes && bytes <= mostBytes) return bytes;
    const range = `from ${sizeText(leastBytes)} to ${sizeText(mostBytes)}`;
    throw new Error(`${quoteValue(value)} is no amount of memory that fits: ${range}, such as 32MiB`);
  };
}

function count(least: number, most: number): (value: unknown) => number {
  return (value) => {
    if (typeof value === "number" && Number.isInteger(value) && value >= least && value <= most) return value;
    throw new Error(`${quoteValue(value)} is no whole number from ${least} to ${most}`);
  };
}
