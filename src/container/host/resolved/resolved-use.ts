/**
 * ResolvedUse: whether the programs of a host ask systemd-resolved: by DNS, because its stub is in /etc/resolv.conf, or
 * without DNS, because nss-resolve is in /etc/nsswitch.conf. If neither is so, its links do not matter to them.
 */
import { areStubs } from "../../../base/model/resolved-stubs.ts";

/** How they ask it, in words; undefined if they do not. */
export function resolvedUse(nsswitch: string, nameservers: readonly string[]): string | undefined {
  if (areStubs(nameservers)) return "its stub is in /etc/resolv.conf";
  return asksResolved(nsswitch) ? "nss-resolve is in /etc/nsswitch.conf" : undefined;
}

/** Whether glibc asks systemd-resolved directly, before or instead of the servers of resolv.conf. */
export function asksResolved(nsswitch: string): boolean {
  const words = /^\s*hosts:(.*)$/m.exec(nsswitch)?.[1]?.split(/\s+/) ?? [];
  const [resolve, dns] = [words.indexOf("resolve"), words.indexOf("dns")];
  return resolve !== -1 && (dns === -1 || resolve < dns);
}
