/**
 * ConfigMap: the keys of kube-dns's ConfigMap, as a mounted folder has them, one file each: `stubDomains` and
 * `upstreamNameservers` in JSON, as settings.
 */
import { join } from "node:path";

import { LIMITS } from "../../base/limits.ts";
import { addressBytes } from "../../base/model/address.ts";
import { type RouteText, parseDomain, parseServer } from "../../base/model/server-text.ts";
import { BadSettings } from "../../config/bad-settings.ts";
import type { FolderSettings } from "../../config/feature-entry.ts";
import { listFolder, readOwnText } from "../../config/file/files.ts";
import { quoteValue } from "../../config/kinds.ts";
import type { LayerValues } from "../../config/layers.ts";

/** A key with its text. */
interface ConfigKey {
  readonly key: string;
  readonly path: string;
  readonly text: string;
}

interface ReadConfigMap extends Omit<FolderSettings, "withoutMeaning"> {
  readonly values: LayerValues;
}

/** kube-dns itself uses no more. */
const UPSTREAMS_MAX = 3;
/** A mounted ConfigMap has hidden links to its current version. */
const HIDDEN = /^\./;

/** Throws a Fault that lists every mistake. */
export async function readFolder(folder: string): Promise<FolderSettings> {
  const keys = [];
  for (const key of await listFolder(folder, HIDDEN)) {
    const path = join(folder, key);
    keys.push({ key, path, text: await readOwnText(path) });
  }
  return { ...readConfigMap(keys), withoutMeaning: [] };
}

/** Throws a Fault that lists every mistake. */
export function readConfigMap(keys: readonly ConfigKey[]): ReadConfigMap {
  const mistakes: string[] = [];
  const routes: RouteText[] = [];
  let where: string | undefined;
  for (const { key, path, text } of keys) {
    try {
      routes.push(...routesIn(key, text));
      where ??= path;
    } catch (error) {
      mistakes.push(`${path}: ${(error as Error).message}`);
    }
  }
  BadSettings.throwAny(mistakes);
  if (where === undefined || routes.length === 0) return { values: {}, places: {} };
  return { values: { dns: routes }, places: { dns: where } };
}

function routesIn(key: string, text: string): RouteText[] {
  if (key === "stubDomains") return stubDomains(text);
  if (key === "upstreamNameservers") {
    const servers = texts(json(text), "a list of at most 3 addresses");
    if (servers.length > UPSTREAMS_MAX)
      throw new Error(`has ${servers.length} nameservers: use at most ${UPSTREAMS_MAX}`);
    return servers.map((server): RouteText => ({ domains: [""], servers: [serverIn(server)], isLocal: false }));
  }
  if (key === "federations") throw new Error("federations are not supported: remove this key");
  throw new Error("unknown key of a kube-dns ConfigMap: use stubDomains or upstreamNameservers");
}

function stubDomains(text: string): RouteText[] {
  const value = json(text);
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new Error('use a map of domains to lists of addresses, such as {"acme.local": ["1.2.3.4"]}');
  }
  const entries = Object.entries(value as Readonly<Record<string, unknown>>);
  if (entries.length > LIMITS.dnsmasqDomains) {
    throw new Error(`has ${entries.length} domains: use at most ${LIMITS.dnsmasqDomains}`);
  }
  return entries.flatMap(([name, list]) => {
    const domain = parseDomain(name);
    if (domain === "" || name.includes("*")) throw new Error(`${quoteValue(name)} is not a domain`);
    const servers = texts(list, `a list of addresses for ${quoteValue(name)}`);
    if (servers.length === 0) throw new Error(`${quoteValue(name)} has no nameserver: add one, or remove the domain`);
    return servers.map((server): RouteText => ({ domains: [domain], servers: [serverIn(server)], isLocal: false }));
  });
}

function json(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`is not valid JSON: ${(error as Error).message}`, { cause: error });
  }
}

function texts(value: unknown, what: string): readonly string[] {
  if (Array.isArray(value) && value.every((each) => typeof each === "string")) return value;
  throw new Error(`invalid value ${quoteValue(value)}: use ${what}`);
}

/** kube-dns takes an address, with a port behind a colon. */
function serverIn(text: string): RouteText["servers"][number] {
  const [, bracketed, plain = text] = /^(?:\[([^\]]+)\]|([^:]+))(?::\d+)?$/.exec(text) ?? [];
  if (addressBytes(bracketed ?? plain) === undefined) {
    throw new Error(`${quoteValue(text)} is not the address of a nameserver: use IP or IP:PORT`);
  }
  return parseServer(text);
}
