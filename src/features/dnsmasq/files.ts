/**
 * DnsmasqFiles: the files of a dnsmasq folder, such as /etc/dnsmasq.d, as settings. Nothing is guessed: an option that
 * dns11 does not have, or one that would mean something else here, is a mistake with its file and line.
 */
import { join } from "node:path";

import { nearest } from "../../base/lib/nearest.ts";
import { BadSettings } from "../../config/bad-settings.ts";
import type { FolderSettings } from "../../config/feature-entry.ts";
import { listFolder, readOwnText } from "../../config/file/files.ts";
import { FEATURE_MAPS, type PlainKey, SETTINGS } from "../../config/keys.ts";
import { quoteValue } from "../../config/kinds.ts";
import type { LayerValues } from "../../config/layers.ts";
import { DeclaredSet } from "../../config/records/declared-set.ts";
import { type ConfigText, type OptionLine, optionLines } from "./option-lines.ts";
import { RECORD_OPTIONS, RecordLines, domainsAbove } from "./record-lines.ts";
import { ServerLines, domainsIn } from "./server-lines.ts";

interface SettingOption {
  readonly key: PlainKey;
  /** The value in the settings file; throws an Error that says what to use. */
  readonly value: (text: string | undefined) => unknown;
}

const DAY_SECONDS = 86_400;
/** The smallest cache, in entries of the size that a short reply with its name takes at most. */
const ENTRIES_MIN = 64;

const on = (): boolean => true;
const seconds = (text: string | undefined): string => `${number(text)}s`;

/**
 * The options of dnsmasq that are a setting here, and those that are about dnsmasq's own process, its
 * sockets, DHCP and TFTP, which mean nothing here. All others change answers in a way that dns11 does not have.
 */
const SETTING_OPTIONS: Readonly<Record<string, SettingOption>> = {
  "domain-needed": { key: "forward.domain-needed", value: on },
  "bogus-priv": { key: "forward.bogus-priv", value: on },
  "strict-order": { key: "forward.order", value: () => "sequential" },
  "all-servers": { key: "forward.order", value: () => "parallel" },
  "dns-forward-max": { key: "forward.max-concurrent", value: number },
  "no-negcache": { key: "cache.max-negative-ttl", value: () => 0 },
  "neg-ttl": { key: "cache.negative-ttl-without-soa", value: seconds },
  "max-cache-ttl": { key: "cache.max-ttl", value: seconds },
  "min-cache-ttl": { key: "cache.min-ttl", value: seconds },
  "cache-size": {
    key: "cache.size",
    value: (text) => (number(text) === 0 ? 0 : `${Math.max(ENTRIES_MIN, number(text))}KiB`),
  },
  "use-stale-cache": {
    key: "cache.max-stale",
    value: (text) => `${text === undefined ? DAY_SECONDS : limited(text)}s`,
  },
  "resolv-file": { key: "resolv-conf", value: (text) => text },
};

function number(text: string | undefined): number {
  if (text === undefined || !/^\d{1,9}$/.test(text)) throw new Error("use a whole number");
  return Number(text);
}

function limited(text: string): number {
  if (number(text) === 0) throw new Error("0 (for ever) is not supported: use a time in seconds");
  return number(text);
}

const WITHOUT_MEANING: ReadonlySet<string> = new Set([
  ...["bind-dynamic", "bind-interfaces", "interface", "except-interface", "listen-address", "port"],
  ...["no-dhcp-interface", "no-dhcpv4-interface", "no-dhcpv6-interface", "bridge-interface", "shared-network"],
  ...["no-ping", "leasefile-ro", "script-arp", "script-on-renewal", "tag-if"],
  ...["local-service", "min-port", "max-port", "query-port", "port-limit", "edns-packet-max"],
  ...["enable-dbus", "enable-ubus", "user", "group", "pid-file", "keep-in-foreground", "no-daemon", "no-ident"],
  ...["log-facility", "log-queries", "log-async", "log-dhcp", "log-debug", "quiet-dhcp", "quiet-dhcp6", "quiet-ra"],
  ...["quiet-tftp", "dumpfile", "dumpmask", "domain-suffix"],
  ...["no-poll", "clear-on-reload", "no-hosts", "localise-queries", "domain", "expand-hosts", "fast-dns-retry"],
  ...["read-ethers", "enable-ra", "ra-param", "bootp-dynamic", "dns-loop-detect", "max-tcp-connections"],
]);
const WITHOUT_MEANING_FAMILIES = /^(dhcp|tftp|enable-tftp|pxe)(-|$)/;

function isWithoutMeaning(name: string): boolean {
  return WITHOUT_MEANING.has(name) || WITHOUT_MEANING_FAMILIES.test(name);
}

/** As dnsmasq leaves them out, and Debian's packages. */
const IGNORED = /^\.|~$|^#.*#$|\.dpkg-(dist|old|new)$/;

export interface ReadFiles extends FolderSettings {
  readonly values: LayerValues;
}

/** Whether there is a feature that answers with records. */
const HAS_RECORDS = Object.hasOwn(FEATURE_MAPS, "records");
const RECORDS = HAS_RECORDS ? RECORD_OPTIONS : {};
const SERVER_OPTIONS = ["server", "local", "rev-server", "address"];
const FLAGS = ["no-resolv", "local-ttl"];
const KNOWN = [...SERVER_OPTIONS, ...FLAGS, ...Object.keys(RECORDS), ...Object.keys(SETTING_OPTIONS)];

/** Throws a Fault that lists every mistake. */
export async function readFolder(folder: string): Promise<FolderSettings> {
  const files = [];
  for (const name of await listFolder(folder, IGNORED)) {
    const path = join(folder, name);
    files.push({ path, text: await readOwnText(path) });
  }
  return readDnsmasqFiles(files);
}

/** Throws a Fault that lists every mistake. */
export function readDnsmasqFiles(files: readonly ConfigText[]): ReadFiles {
  const folder = new DnsmasqFolder();
  for (const file of files) for (const option of optionLines(file)) folder.add(option);
  return folder.read();
}

class DnsmasqFolder {
  readonly #servers = new ServerLines();
  readonly #records = new RecordLines();
  readonly #values: Record<string, unknown> = {};
  readonly #places: Record<string, string> = {};
  readonly #withoutMeaning: string[] = [];
  readonly #mistakes: string[] = [];
  #noResolv: string | undefined;
  #localTtl: number | undefined;

  add(option: OptionLine): void {
    const { name, where } = option;
    if (isWithoutMeaning(name)) {
      this.#withoutMeaning.push(`${where}: ${name}`);
      return;
    }
    try {
      if (option.isOpen) throw new Error('has a quotation mark (") without an end: add one, or remove it');
      this.#put(option);
    } catch (error) {
      this.#mistakes.push(`${where}: ${name}: ${(error as Error).message}`);
    }
  }

  /** Throws a Fault that lists every mistake. */
  read(): ReadFiles {
    const records = this.#records.names(this.#localTtl, (mistake) => this.#mistakes.push(mistake));
    this.#mistakes.push(...this.#crossings(), ...new DeclaredSet().add(records));
    BadSettings.throwAny(this.#mistakes);
    const hasServers = !this.#servers.isEmpty || this.#noResolv !== undefined || "resolv-conf" in this.#values;
    const values: LayerValues = {
      ...(this.#values as LayerValues),
      ...(hasServers && { dns: this.#servers.routes({ usesHost: this.#noResolv === undefined }) }),
      ...(records.length > 0 && { records }),
    };
    const places = { ...this.#places, ...(records[0] !== undefined && { records: records[0].where }) };
    return { values, places, withoutMeaning: this.#withoutMeaning };
  }

  #put(option: OptionLine): void {
    const { name, parts, where } = option;
    const setting = own(SETTING_OPTIONS, name);
    const record = own(RECORDS, name);
    if (SERVER_OPTIONS.includes(name)) this.#putServer(option);
    else if (record !== undefined) record(this.#records, option);
    else if (name === "no-resolv") this.#noResolv = this.#places["dns"] ??= where;
    else if (name === "local-ttl") this.#localTtl = localTtl(parts);
    else if (setting === undefined) throw unsupported(name);
    else this.#set(setting.key, setting.value(parts.length === 0 ? undefined : parts.join(",")), where);
  }

  #putServer(option: OptionLine): void {
    const { name, parts, where } = option;
    if (name !== "address") this.#places["dns"] ??= where;
    if (name === "rev-server") return this.#servers.addReverse(option);
    if (name !== "address") return this.#servers.add(option);
    const { domains, rest } = domainsIn(parts.join(","));
    if (domains === undefined) throw new Error("names no domain: use address=/DOMAIN/ADDRESS");
    if (rest !== "" && !HAS_RECORDS) throw unsupported(name);
    if (rest !== "") return this.#records.addDomains(domains, rest, where);
    this.#places["dns"] ??= where;
    this.#servers.deny(domains, where);
  }

  /** The last line counts, as in dnsmasq. */
  #set(key: PlainKey, value: unknown, where: string): void {
    this.#values[key] = SETTINGS[key].kind.read(value);
    this.#places[key] = where;
  }

  /** Where dnsmasq would ask a server, and dns11 answers with the address of the whole domain. */
  #crossings(): readonly string[] {
    const whole = this.#records.wholeDomains;
    return [...this.#servers.domains()].flatMap(({ domain, where, isLocal }) => {
      const parents = domainsAbove(domain).filter((each) => whole.has(each) && !(isLocal && each === domain));
      return parents
        .slice(0, 1)
        .map((each) => `${where}: ${domain}: all names of ${each} have an address (${whole.get(each)}): remove one`);
    });
  }
}

function localTtl([text = "", ...more]: readonly string[]): number {
  if (!/^\d{1,6}$/.test(text) || more.length > 0) throw new Error("use a time in seconds");
  return Number(text);
}

function own<T>(table: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}

function unsupported(name: string): Error {
  const meant = nearest(name, KNOWN);
  const hint = meant === undefined ? "" : ` (did you mean ${meant}?)`;
  return new Error(`${quoteValue(name)} is not supported${hint}: remove it, or leave this folder to dnsmasq`);
}
