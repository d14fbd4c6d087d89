/**
 * Kinds of values: how one value of a setting is read, whether it comes from a flag, a variable or the settings file, and how it
 * is written in the file. Reading throws an Error that quotes the value and says what to use (`...: use ...`), which the
 * manual and shell completion parse.
 */
import { durationText, parseDuration, parseSize, sizeText } from "../base/lib/quantity.ts";
import { addressBytes } from "../base/model/address.ts";
import type { NodeFilter } from "../base/model/kind-policy.ts";
import { HEALTH_PROBE_FORM, type HealthProbe, healthProbeText, parseHealthProbe } from "../base/model/health-probe.ts";
import { METRICS_OFF } from "../base/model/metrics-policy.ts";
import { ONLY_FORMS, type OnlyFilter, onlyText, parseOnly } from "../base/model/only.ts";
import { type RouteText, parseDomain, parseRoute, routeText } from "../base/model/server-text.ts";
import { zoneName, zoneProblem } from "./zone-name.ts";

/** How settings select the containers that are KIND nodes. */
const NODE_FILTER_FORMS = "auto, label=KEY, label=KEY=VALUE or name=PATTERN";

export interface Kind<T> {
  read(value: unknown): T;
  /** The value in the form of the settings file, where that is another one. */
  write?(value: T): unknown;
  /** What the text of a variable stands for, where that is not the text. */
  fromText?(text: string): unknown;
}

const SECOND_MS = 1_000;
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

const YES = new Set(["true", "1", "yes", "on"]);
const NO = new Set(["false", "0", "no", "off"]);

export const BOOLEAN: Kind<boolean> = {
  read: (value) => {
    if (typeof value === "boolean") return value;
    throw new Error(`invalid value ${quoteValue(value)}: use true or false`);
  },
  fromText: (text) => {
    const word = text.trim().toLowerCase();
    return YES.has(word) ? true : NO.has(word) ? false : text;
  },
};

export const ONLY: Kind<OnlyFilter> = {
  read: (value) => {
    const filter = parseOnly(readText(value));
    if (filter === undefined) throw new Error(`invalid filter ${quoteValue(value)}: use ${ONLY_FORMS}`);
    return filter;
  },
  write: onlyText,
};

export const ROUTE: Kind<RouteText> = { read: (value) => parseRoute(readText(value)), write: routeText };

export const HEALTH_PROBE: Kind<HealthProbe> = {
  read: (value) => {
    const probe = parseHealthProbe(readText(value));
    if (probe === undefined) {
      throw new Error(
        `invalid probe ${quoteValue(value)}: use ${HEALTH_PROBE_FORM}, such as kubedns=kubernetes.default.svc.cluster.local@app`,
      );
    }
    return probe;
  },
  write: healthProbeText,
};

export const NODE_FILTER: Kind<NodeFilter> = {
  read: (value) => {
    const filter = parseNodeFilter(readText(value));
    if (filter === undefined) throw new Error(`invalid node filter ${quoteValue(value)}: use ${NODE_FILTER_FORMS}`);
    return filter;
  },
  write: nodeFilterText,
};

/** An IP address and a port, or off. Host names are refused: they could resolve to another address later. */
/** Nothing says of a container that it has an engine inside. */
export const NESTED_FILTER: Kind<NodeFilter> = {
  read: (value) => {
    const filter = parseNodeFilter(readText(value));
    if (filter !== undefined && filter.kind !== "auto") return filter;
    throw new Error(`invalid filter ${quoteValue(value)}: use name=PATTERN, label=KEY or label=KEY=VALUE`);
  },
  write: nodeFilterText,
};

export const LISTEN_ADDRESS: Kind<string> = {
  read: (value) => {
    const text = readText(value);
    if (text === METRICS_OFF) return text;
    const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text) ?? [];
    const address = bracketed ?? plain ?? "";
    const isAddress = addressBytes(address) !== undefined && address.includes(":") === (bracketed !== undefined);
    if (isAddress && !address.includes("%") && Number(port) <= PORT_MAX) return text;
    throw new Error(`invalid address ${quoteValue(value)}: use IP:PORT, such as 127.0.0.1:9511 or [::1]:9511, or off`);
  },
};

/** Domains that have another meaning on every machine: names of this machine, multicast DNS, reverse names. */
const TAKEN_DOMAIN = /(^|\.)(localhost|local|arpa|invalid|onion)$/;
/** Redirect rules compare up to 128 bytes. */
const HOST_DOMAIN_CHARS = 100;

export const HOST_DOMAIN: Kind<string> = {
  read: (value) => {
    const domain = parseDomain(readText(value));
    if (domain === "" || domain.length > HOST_DOMAIN_CHARS)
      throw new Error(
        `invalid domain ${quoteValue(value)}: use a domain name of at most ${HOST_DOMAIN_CHARS} characters`,
      );
    if (!TAKEN_DOMAIN.test(domain)) return domain;
    throw new Error(`invalid domain ${quoteValue(value)}: use one without a meaning of its own, such as docker`);
  },
};

export const ZONE: Kind<string> = {
  read: (value) => {
    const text = readText(value);
    const problem = zoneProblem(text);
    if (problem !== undefined) throw new Error(`invalid zone ${quoteValue(value)}: ${problem}`);
    return zoneName(text) ?? "";
  },
};

/** As Docker accepts it; containers on these networks have no names. */
const DOCKER_NETWORK = /^(?!(?:host|none|default)$)[a-zA-Z0-9][a-zA-Z0-9_.-]*$/;
const NETWORK_CHARS = 255;

export const NETWORK_NAME: Kind<string> = {
  read: (value) => {
    const text = readText(value);
    if (DOCKER_NETWORK.test(text) && text.length <= NETWORK_CHARS) return text;
    throw new Error(`invalid network ${quoteValue(value)}: use the name of a Docker network, such as shop_default`);
  },
};

/** An absolute path; the example is one that the setting may have. */
export function path(example: string): Kind<string> {
  return {
    read: (value) => {
      const text = readText(value);
      if (text.startsWith("/") && !text.includes("\0")) return text;
      throw new Error(`invalid path ${quoteValue(value)}: use an absolute path, such as ${example}`);
    },
  };
}

const LOOPBACK = /^127\.|^::1?$|^0\./;

/** One of the words, or an IP address that is the same from everywhere: neither link-local nor loopback. */
export function wordOrAddress(words: readonly string[], why: string): Kind<string> {
  return {
    read: (value) => {
      const text = readText(value);
      if (words.includes(text)) return text;
      if (addressBytes(text) === undefined || text.includes("%")) {
        throw new Error(`invalid value ${quoteValue(value)}: use one of ${words.join(", ")} or an IP address`);
      }
      if (LOOPBACK.test(text)) throw new Error(`invalid address ${quoteValue(value)}: a loopback address ${why}`);
      return text;
    },
  };
}

export function oneOf<T extends string>(words: readonly T[]): Kind<T> {
  return {
    read: (value) => {
      const word = words.find((each) => each === value);
      if (word !== undefined) return word;
      throw new Error(`invalid value ${quoteValue(value)}: use one of ${words.join(", ")}`);
    },
  };
}

/** In milliseconds. */
export function duration(minMs: number, maxMs: number, stepMs: number): Kind<number> {
  const isValid = (ms: number | undefined): ms is number =>
    ms !== undefined && ms >= minMs && ms <= maxMs && ms % stepMs === 0;
  return {
    read: (value) => {
      const ms = typeof value === "string" || typeof value === "number" ? parseDuration(value) : undefined;
      if (isValid(ms)) return ms;
      const kind = stepMs === SECOND_MS ? "whole seconds" : "a time";
      const range = `${kind} from ${durationText(minMs)} to ${durationText(maxMs)}`;
      const examples = DURATION_EXAMPLES.filter((example) => isValid(parseDuration(example))).join(" or ");
      throw new Error(`invalid duration ${quoteValue(value)}: use ${range}, such as ${examples}`);
    },
    write: durationText,
  };
}

const DAYS_MS = 86_400_000;
const TTL_DAYS_MAX = 7;

export const TTL = duration(0, TTL_DAYS_MAX * DAYS_MS, SECOND_MS);

/** In bytes. */
export function size(minBytes: number, maxBytes: number): Kind<number> {
  return {
    read: (value) => {
      const bytes = typeof value === "string" || typeof value === "number" ? parseSize(value) : undefined;
      if (bytes !== undefined && bytes >= minBytes && bytes <= maxBytes) return bytes;
      const range = `${sizeText(minBytes)} to ${sizeText(maxBytes)}`;
      throw new Error(`invalid size ${quoteValue(value)}: use a size from ${range}, such as 32MiB`);
    },
    write: sizeText,
  };
}

/** The same, or 0. */
export function zeroOr(kind: Kind<number>): Kind<number> {
  return {
    ...kind,
    read: (value) => {
      if (value === 0 || value === "0") return 0;
      try {
        return kind.read(value);
      } catch (error) {
        throw new Error((error as Error).message.replace(": use ", ": use 0 or "), { cause: error });
      }
    },
  };
}

export function count(min: number, max: number): Kind<number> {
  return {
    read: (value) => {
      if (typeof value === "number" && Number.isInteger(value) && value >= min && value <= max) return value;
      throw new Error(`invalid number ${quoteValue(value)}: use a whole number from ${min} to ${max}`);
    },
    fromText: (text) => (/^\d{1,15}$/.test(text) ? Number(text) : text),
  };
}

/** A reader of another file, which quotes values in its errors. */
export function quoting<T>(read: (value: unknown, quote: typeof quoteValue) => T): Kind<T> {
  return { read: (value) => read(value, quoteValue) };
}

function readText(value: unknown): string {
  if (typeof value === "string") return value;
  throw new Error(`invalid value ${quoteValue(value)}: use a string`);
}

/** Parses one filter; undefined if it has none of the forms. */
export function parseNodeFilter(text: string): NodeFilter | undefined {
  if (text === "auto") return { kind: "auto" };
  const [, kind, rest] = /^(label|name)=(.+)$/s.exec(text) ?? [];
  if (rest === undefined) return undefined;
  if (kind === "name") return { kind: "name", pattern: rest };
  const [, key, value] = /^([^=]+)(?:=(.*))?$/s.exec(rest) ?? [];
  return key === undefined ? undefined : { kind: "label", key, value };
}

export function nodeFilterText(filter: NodeFilter): string {
  if (filter.kind === "auto") return "auto";
  if (filter.kind === "name") return `name=${filter.pattern}`;
  return `label=${filter.key}${filter.value === undefined ? "" : `=${filter.value}`}`;
}
