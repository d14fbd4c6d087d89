/**
 * OtherOptions: the options of dnsmasq that are a setting here, and those that are about dnsmasq's own process, its
 * sockets, DHCP and TFTP, which mean nothing here. All others change answers in a way that dns11 does not have.
 */
import type { PlainKey } from "../keys.ts";

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

export const SETTING_OPTIONS: Readonly<Record<string, SettingOption>> = {
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
  ...["no-dhcp-interface", "local-service", "min-port", "max-port", "query-port", "port-limit", "edns-packet-max"],
  ...["enable-dbus", "enable-ubus", "user", "group", "pid-file", "keep-in-foreground", "no-daemon", "no-ident"],
  ...["log-facility", "log-queries", "log-async", "log-dhcp", "log-debug", "quiet-dhcp", "quiet-dhcp6", "quiet-ra"],
  ...["no-poll", "clear-on-reload", "no-hosts", "localise-queries", "domain", "expand-hosts", "fast-dns-retry"],
  ...["read-ethers", "enable-ra", "ra-param", "bootp-dynamic", "dns-loop-detect", "max-tcp-connections"],
]);
const WITHOUT_MEANING_FAMILIES = /^(dhcp|tftp|enable-tftp|pxe)(-|$)/;

export function isWithoutMeaning(name: string): boolean {
  return WITHOUT_MEANING.has(name) || WITHOUT_MEANING_FAMILIES.test(name);
}
