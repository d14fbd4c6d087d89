/**
 * DnsmasqFiles: the files of a dnsmasq folder, such as /etc/dnsmasq.d, as settings. Nothing is guessed: an option that
 * dns11 does not have, or one that would mean something else here, is a mistake with its file and line.
 */
import { nearest } from "../../base/lib/nearest.ts";
import { BadSettings } from "../bad-settings.ts";
import { quoteValue } from "../kinds.ts";
import { DeclaredSet } from "../records/declared-set.ts";
import { SETTINGS, type PlainKey } from "../keys.ts";
import type { LayerValues } from "../layers.ts";
import { type ConfigText, type OptionLine, optionLines } from "./option-lines.ts";
import { SETTING_OPTIONS, isWithoutMeaning } from "./other-options.ts";
import { RECORD_OPTIONS, RecordLines } from "./record-lines.ts";
import { ServerLines, domainsIn } from "./server-lines.ts";

export interface ReadFiles {
  readonly values: LayerValues;
  /** Where each key is set. */
  readonly places: Readonly<Record<string, string>>;
  /** Options that mean nothing here, each with file and line. */
  readonly withoutMeaning: readonly string[];
}

const SERVER_OPTIONS = ["server", "local", "rev-server", "address"];
const FLAGS = ["no-resolv", "local-ttl"];
const KNOWN = [...SERVER_OPTIONS, ...FLAGS, ...Object.keys(RECORD_OPTIONS), ...Object.keys(SETTING_OPTIONS)];

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
    const record = own(RECORD_OPTIONS, name);
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

/** The domain itself, and those that it is below. */
function domainsAbove(domain: string): readonly string[] {
  const labels = domain.split(".");
  return labels.map((_, index) => labels.slice(index).join("."));
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
