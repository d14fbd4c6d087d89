/**
 * A resolv.conf, read as the engine reads the host's: what it understands is used, what it does not is left alone, and
 * an address that is none is kept apart, so that somebody can be told.
 */
import { addressBytes } from "../../base/model/address.ts";

export interface ResolvConf {
  /** The addresses that it names, as they are written, with their zones. */
  readonly nameservers: readonly string[];
  /** What stands where an address should. */
  readonly invalid: readonly string[];
  readonly search: readonly string[];
  /** Of all its options lines. */
  readonly options: readonly string[];
  /** Whether it says anything of ndots, be it wrong. */
  readonly isNdotsSet: boolean;
}

export function parseResolvConf(text: string): ResolvConf {
  const nameservers: string[] = [];
  const invalid: string[] = [];
  const options: string[] = [];
  let search: readonly string[] = [];
  for (const line of text.split("\n")) {
    // A comment is a directive that nobody knows.
    const [directive, ...values] = line.trim().split(/\s+/);
    const [first] = values;
    if (first === undefined) continue;
    if (directive === "nameserver") (addressBytes(first) === undefined ? invalid : nameservers).push(first);
    if (directive === "search" || directive === "domain") search = values;
    if (directive === "options") options.push(...values);
  }
  return { nameservers, invalid, search, options, isNdotsSet: options.some((option) => /^ndots(:|$)/.test(option)) };
}
