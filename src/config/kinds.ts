/**
 * Kinds of values: how a value of a setting is read, whether it comes from a flag, a variable or the settings file, and how it
 * is written in the file. Reading throws an Error that quotes the value and says what to use (`...: use ...`), which the
 * manual and shell completion parse.
 */
import { nearest } from "../base/lib/nearest.ts";
import { durationText, parseDuration, parseSize, sizeText } from "../base/lib/quantity.ts";
import { addressBytes } from "../base/model/address.ts";
import {
  METRICS_OFF,
  HEALTH_PROBE_FORM,
  type HealthProbe,
  healthProbeText,
  parseHealthProbe,
} from "../base/model/metrics-policy.ts";
import { ONLY_FORMS, type OnlyFilter, onlyText, parseOnly } from "../base/model/container-choice.ts";
import { type RouteText, parseDomain, parseRoute, routeText } from "../base/model/server-text.ts";

export interface Kind<T> {
  /** Throws an Error that says what to use; of a list or a map, BadParts with every mistake in it. */
  read(value: unknown): T;
  /** The value in the form of the settings file, where that is another one. */
  write?(value: T): unknown;
  /** What the text of a variable stands for, where that is not the text. */
  fromText?(text: string): unknown;
}

/** What a value of this kind is read as. */
export type Read<K> = K extends Kind<infer T> ? T : never;

/** What is wrong in a list or a map. */
interface BadPart {
  readonly path: readonly (string | number)[];
  /** The key itself is wrong, not its value. */
  readonly isKey: boolean;
  readonly what: () => string;
}

class BadParts extends Error {
  readonly parts: readonly BadPart[];

  constructor(parts: readonly BadPart[]) {
    super(parts[0]?.what());
    this.parts = parts;
  }
}

/** Reads the parts of a list or a map, to the end, so that all mistakes are found. */
export class Parts {
  readonly #bad: BadPart[] = [];

  /** The value of a part; undefined if it is wrong. */
  read<T>(step: string | number, kind: Kind<T>, value: unknown): T | undefined {
    try {
      return kind.read(value);
    } catch (error) {
      for (const bad of badPartsOf(error, value)) this.#bad.push({ ...bad, path: [step, ...bad.path] });
      return undefined;
    }
  }

  refuse(step: string | number, what: () => string, isKey = false): void {
    this.#bad.push({ path: [step], isKey, what });
  }

  /** Throws what was wrong. */
  end(): void {
    if (this.#bad.length > 0) throw new BadParts(this.#bad);
  }
}

/** What reading a value has thrown. */
export function badPartsOf(error: unknown, value: unknown): readonly BadPart[] {
  if (error instanceof BadParts) return error.parts;
  const what = value === null ? EMPTY : (error as Error).message;
  return [{ path: [], isKey: false, what: () => what }];
}

const EMPTY = "has no value: set one, or remove the key to use the default";

function wrongType(expected: string, value: unknown): Error {
  return new Error(value === null ? EMPTY : `invalid value ${quoteValue(value)}: use ${expected}`);
}

/** `separator` is between the values in a variable. */
export function listOf<T>(each: Kind<T>, separator = /[\s,]+/): Kind<readonly T[]> {
  return {
    ...manyOf(each, separator),
    read: (value) => {
      if (!Array.isArray(value)) throw notAList(each, value);
      const parts = new Parts();
      const values = value.map((item, index) => parts.read(index, each, item) as T);
      parts.end();
      return values;
    },
  };
}

/** A list, or its only value. */
export function oneOrMore<T>(each: Kind<T>, separator = /[\s,]+/): Kind<readonly T[]> {
  return {
    ...manyOf(each, separator),
    read: (value) => (Array.isArray(value) ? value : [value]).map((item) => each.read(item)),
  };
}

function manyOf<T>(each: Kind<T>, separator: RegExp): Pick<Required<Kind<readonly T[]>>, "write" | "fromText"> {
  return {
    write: (values) => values.map((value) => each.write?.(value) ?? value),
    fromText: (text) =>
      text
        .split(separator)
        .filter((word) => word !== "")
        .map((word) => each.fromText?.(word) ?? word),
  };
}

/** Of a single value that is wrong itself, so that a list of it would be no better, that is said. */
function notAList(each: Kind<unknown>, value: unknown): Error {
  const isSingle = typeof value === "string" || typeof value === "number";
  try {
    if (isSingle) each.read(value);
  } catch (error) {
    return error as Error;
  }
  return wrongType(`a list, such as ${isSingle ? `[${value}]` : "[one, two]"}`, value);
}

type ReadMap<S> = { readonly [K in keyof S]?: Read<S[K]> };

/** A longer list hides the mistake. */
const KEYS_LISTED_MAX = 8;

/** A map with these keys, none of which has to be there. */
export function mapOf<S extends Readonly<Record<string, Kind<unknown>>>>(shape: S): Kind<ReadMap<S>> {
  const keys = Object.keys(shape);
  const which = keys.length > KEYS_LISTED_MAX ? `keys such as ${keys[0]}` : `the keys ${keys.join(", ")}`;
  return {
    read: (value) => {
      if (!isMap(value)) throw wrongType(`a map with ${which}`, value);
      const parts = new Parts();
      const known = Object.entries(shape).filter(([key]) => Object.hasOwn(value, key));
      const values = known.map(([key, kind]) => [key, parts.read(key, kind, value[key])] as const);
      for (const key of Object.keys(value))
        if (!Object.hasOwn(shape, key)) parts.refuse(key, () => unknownKey(key, keys), true);
      parts.end();
      return Object.fromEntries(values) as ReadMap<S>;
    },
  };
}

/** A map with names of people's choice; `what` is what has such a name. */
export function byName<T>(what: string, each: Kind<T>, example: string): Kind<Readonly<Record<string, T>>> {
  return {
    read: (value) => {
      if (!isMap(value)) throw wrongType(`a map, such as ${example}`, value);
      const parts = new Parts();
      const values = Object.entries(value).map(([name, item]) => {
        if (name === "") parts.refuse(name, () => `the ${what} name is empty`);
        return [name, name === "" ? undefined : parts.read(name, each, item)] as const;
      });
      parts.end();
      return Object.fromEntries(values) as Readonly<Record<string, T>>;
    },
  };
}

export function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function unknownKey(key: string, keys: readonly string[]): string {
  const why = whyNoSetting(key);
  if (why !== undefined) return `is not supported: ${why}`;
  const suggestion = nearest(key, keys);
  if (suggestion !== undefined) return `unknown key; did you mean "${suggestion}"?`;
  return keys.length > KEYS_LISTED_MAX
    ? "unknown key; dns11 man dns11.yaml prints all keys"
    : `unknown key; use one of ${keys.join(", ")}`;
}

/** Settings of Docker that are none here, because the resolver library in the container applies them, or that have another name. */
const NOT_SETTINGS = {
  "dns-search":
    "search lists are applied by the resolver library in the container, which reads its own resolv.conf: " +
    "set them on the container (docker run --dns-search) or on the engine (dockerd --dns-search)",
  "dns-opt":
    "options of resolv.conf are applied by the resolver library in the container: set them on the container " +
    "(docker run --dns-opt). What dns11 itself does is set by forward.order: rotate (for rotate), forward.tcp (use-vc), " +
    "forward.budget (timeout:N) and forward.domain-needed (ndots:N)",
} as const;

export const NOT_SETTINGS_NAMES = Object.keys(NOT_SETTINGS);

/** Why there is no such setting, and where to set it; undefined for any other word. */
export function whyNoSetting(name: string): string | undefined {
  return Object.hasOwn(NOT_SETTINGS, name) ? NOT_SETTINGS[name as keyof typeof NOT_SETTINGS] : undefined;
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

/** An IP address and a port, or off. Host names are refused: they could resolve to another address later. */
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

export function readText(value: unknown): string {
  if (typeof value === "string") return value;
  throw new Error(`invalid value ${quoteValue(value)}: use a string`);
}
