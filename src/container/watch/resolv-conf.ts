/**
 * ResolvConf: a resolv.conf, parsed as the engine parses the host's. Unknown lines are ignored; nameservers that are
 * not addresses are returned separately, for a warning.
 */
import { addressBytes } from "../../base/model/address.ts";

export interface ResolvConf {
  /** The nameservers as written, with their IPv6 zones. */
  readonly nameservers: readonly string[];
  /** Nameserver entries that are not addresses. */
  readonly invalid: readonly string[];
  readonly search: readonly string[];
  /** The options of all lines. */
  readonly options: readonly string[];
  /** Whether ndots is set, validly or not. */
  readonly isNdotsSet: boolean;
}

/** A nameserver, and the line of a host's file that lists it. */
export interface ListedServer {
  readonly address: string;
  readonly file: string;
  /** The first line is 1. */
  readonly line: number;
}

export function parseResolvConf(text: string): ResolvConf {
  const nameservers: string[] = [];
  const invalid: string[] = [];
  const options: string[] = [];
  let search: readonly string[] = [];
  for (const line of text.split("\n")) {
    // A comment is ignored as an unknown directive.
    const [directive, ...values] = line.trim().split(/\s+/);
    const [first] = values;
    if (first === undefined) continue;
    if (directive === "nameserver") (addressBytes(first) === undefined ? invalid : nameservers).push(first);
    if (directive === "search" || directive === "domain") search = values;
    if (directive === "options") options.push(...values);
  }
  return { nameservers, invalid, search, options, isNdotsSet: options.some((option) => /^ndots(:|$)/.test(option)) };
}
