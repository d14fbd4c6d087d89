/**
 * RecordLines: the names that a dnsmasq folder declares, as the setting `records` would. Values of one name may stand on
 * several lines.
 */
import { presentation } from "../../base/dns/name.ts";
import { addressBytes, reverseLabels } from "../../base/model/address.ts";
import { type DeclaredName, EVERYBODY } from "../../base/model/declared-name.ts";
import { quoteValue } from "../../config/kinds.ts";
import { readNameValue } from "../../config/records/name-value.ts";
import { readOwner } from "../../config/records/record-data.ts";
import type { OptionLine } from "./option-lines.ts";

type Values = Record<string, string[]>;

interface Entry {
  readonly where: string;
  readonly values: Values;
  ttlSeconds: number | undefined;
  isDerived: boolean;
}

/** The reader of each option. It throws an Error that says what to use. */
type ReadOption = (entries: RecordLines, option: OptionLine) => void;

const TTL = /^\d{1,9}$/;
/** What dnsmasq answers for `#`. */
const NULL_ADDRESSES = ["0.0.0.0", "::"];

export class RecordLines {
  readonly #entries = new Map<string, Entry>();
  /** Domains with one address for all names below. */
  readonly #wholeDomains = new Map<string, string>();

  /** `address=/DOMAIN/ADDRESS`, of all names at and below the domain. */
  addDomains(domains: readonly string[], address: string, where: string): void {
    const addresses = (address === "#" ? NULL_ADDRESSES : [address]).map((each) => [keyOf(each), each] as const);
    for (const domain of domains) {
      this.#wholeDomains.set(domain, this.#wholeDomains.get(domain) ?? where);
      this.#entryOf(domain, where);
      for (const [key, each] of addresses) this.put(`*.${domain}`, key, each, where);
    }
  }

  /** The domains with addresses for all names below them, and where. */
  get wholeDomains(): ReadonlyMap<string, string> {
    return this.#wholeDomains;
  }

  put(name: string, key: string, value: string, where: string, ttlSeconds?: number): void {
    const entry = this.#entryOf(name, where);
    const known = (entry.values[key] ??= []);
    if (!known.includes(value)) known.push(value);
    entry.ttlSeconds ??= ttlSeconds;
    entry.isDerived = false;
  }

  /** The reverse name of an address, unless it is declared. */
  point(address: string, target: string, where: string): void {
    const bytes = addressBytes(address);
    if (bytes === undefined) return;
    const labels = reverseLabels(bytes);
    const name = `${presentation(labels, 0, labels.length)}.${bytes.length === 4 ? "in-addr" : "ip6"}.arpa`;
    if (this.#entries.has(name)) return;
    const entry = this.#entryOf(name, where);
    entry.values["ptr"] = [target];
    entry.isDerived = true;
  }

  /** All names; `ttlSeconds` of those that have none of their own. Notes an Error of each that is not valid. */
  names(ttlSeconds: number | undefined, onMistake: (text: string) => void): readonly DeclaredName[] {
    return [...this.#entries].flatMap(([name, { where, values, ttlSeconds: own, isDerived }]): DeclaredName[] => {
      try {
        const value = readNameValue(name, values["cname"] === undefined ? this.#withDomain(name, values) : values);
        const ttl = own ?? ttlSeconds;
        const declared = { ...value, name, scope: EVERYBODY, where, ttlSeconds: ttl };
        return [isDerived ? { ...declared, isDerived } : declared];
      } catch (error) {
        onMistake(`${where}: ${name}: ${(error as Error).message}`);
        return [];
      }
    });
  }

  /** A name at or below a whole domain has the domain's addresses of each family of which it has none of its own. */
  #withDomain(name: string, values: Values): Values {
    const domain = domainsAbove(name).find((each) => this.#wholeDomains.has(each));
    const { a, aaaa } = this.#entries.get(`*.${domain}`)?.values ?? {};
    return { ...(a && { a }), ...(aaaa && { aaaa }), ...values };
  }

  #entryOf(name: string, where: string): Entry {
    const owner = readOwner(name);
    const entry = this.#entries.get(owner) ?? { where, values: {}, ttlSeconds: undefined, isDerived: false };
    this.#entries.set(owner, entry);
    return entry;
  }
}

/** The domain itself, and those that it is below. */
export function domainsAbove(domain: string): readonly string[] {
  const labels = domain.split(".");
  return labels.map((_, index) => labels.slice(index).join("."));
}

export const RECORD_OPTIONS: Readonly<Record<string, ReadOption>> = {
  "host-record": readHost,
  cname: readAlias,
  "srv-host": readService,
  "mx-host": readMail,
  "txt-record": (entries, { parts, where }) => {
    const [name = "", ...texts] = parts;
    // Readers put the strings of one record together.
    entries.put(name, "txt", texts.join(""), where);
  },
  "ptr-record": (entries, { parts, where }) => {
    const [name = "", target, ...more] = parts;
    if (target === undefined || more.length > 0) throw new Error("use ptr-record=NAME,TARGET");
    entries.put(name, "ptr", target, where);
  },
  "caa-record": (entries, { parts, where }) => {
    const [name = "", flags, tag, ...value] = parts;
    if (flags === undefined || tag === undefined || value.length === 0) {
      throw new Error("use caa-record=NAME,FLAGS,TAG,VALUE");
    }
    entries.put(name, "caa", `${flags} ${tag} "${value.join(",")}"`, where);
  },
};

/** `host-record=NAME[,NAME...],[IPV4],[IPV6][,TTL]` */
function readHost(entries: RecordLines, { parts, where }: OptionLine): void {
  const words = parts.filter((part) => part !== "");
  const last = words.at(-1) ?? "";
  const ttl = TTL.test(last) ? Number(words.pop()) : undefined;
  const addresses = words.filter((word) => addressBytes(word) !== undefined);
  const names = words.slice(0, words.length - addresses.length);
  const [first] = names;
  if (first === undefined || addresses.length === 0 || names.some((name) => addressBytes(name) !== undefined)) {
    throw new Error("use host-record=NAME,ADDRESS, with the names before the addresses");
  }
  const keys = addresses.map((each) => keyOf(each));
  if (new Set(keys).size < keys.length)
    throw new Error("has several addresses of one family, of which dnsmasq has the last one only: use a line for each");
  for (const name of names) for (const each of addresses) entries.put(name, keyOf(each), each, where, ttl);
  for (const each of addresses) entries.point(each, first, where);
}

/** `cname=NAME[,NAME...],TARGET[,TTL]` */
function readAlias(entries: RecordLines, { parts, where }: OptionLine): void {
  const words = [...parts];
  const ttl = TTL.test(words.at(-1) ?? "") ? Number(words.pop()) : undefined;
  const target = words.pop();
  if (target === undefined || words.length === 0) throw new Error("use cname=NAME,TARGET");
  for (const name of words) entries.put(name, "cname", target, where, ttl);
}

/** `srv-host=NAME[,TARGET[,PORT[,PRIORITY[,WEIGHT]]]]`; without a target there is no such service. */
function readService(entries: RecordLines, { parts, where }: OptionLine): void {
  const [name = "", target, port = "1", priority = "0", weight = "0", ...more] = parts;
  if (more.length > 0) throw new Error("use srv-host=NAME,TARGET,PORT,PRIORITY,WEIGHT");
  if (!/^_[^.]+\._[^.]+\../.test(name)) {
    throw new Error(`${quoteValue(name)} has no domain: use _SERVICE._PROTOCOL.DOMAIN`);
  }
  entries.put(
    name,
    "srv",
    `${priority} ${weight} ${port} ${target === undefined || target === "" ? "." : target}`,
    where,
  );
}

/** `mx-host=NAME,HOST[,PREFERENCE]` */
function readMail(entries: RecordLines, { parts, where }: OptionLine): void {
  const [name = "", host, preference = "1", ...more] = parts;
  if (host === undefined || host === "" || more.length > 0) throw new Error("use mx-host=NAME,HOST,PREFERENCE");
  entries.put(name, "mx", `${preference} ${host}`, where);
}

function keyOf(address: string): "a" | "aaaa" {
  const bytes = address.includes("%") ? undefined : addressBytes(address);
  if (bytes === undefined) throw new Error(`${quoteValue(address)} is not an IP address`);
  return bytes.length === 4 ? "a" : "aaaa";
}
