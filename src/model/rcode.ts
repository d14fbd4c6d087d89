/** Response codes and extended errors by their names, as people know them from other tools. */
const RCODES = new Map([
  [0, "NOERROR"],
  [1, "FORMERR"],
  [2, "SERVFAIL"],
  [3, "NXDOMAIN"],
  [4, "NOTIMP"],
  [5, "REFUSED"],
  [6, "YXDOMAIN"],
  [7, "YXRRSET"],
  [8, "NXRRSET"],
  [9, "NOTAUTH"],
  [10, "NOTZONE"],
  [16, "BADVERS"],
  [23, "BADCOOKIE"],
]);

/** RFC 8914, 4. */
const EXTENDED_ERRORS = new Map([
  [0, "other error"],
  [1, "unsupported DNSKEY algorithm"],
  [2, "unsupported DS digest type"],
  [3, "stale answer"],
  [4, "forged answer"],
  [5, "DNSSEC indeterminate"],
  [6, "DNSSEC bogus"],
  [7, "signature expired"],
  [8, "signature not yet valid"],
  [9, "DNSKEY missing"],
  [10, "RRSIGs missing"],
  [11, "no zone key bit set"],
  [12, "NSEC missing"],
  [13, "cached error"],
  [14, "not ready"],
  [15, "blocked"],
  [16, "censored"],
  [17, "filtered"],
  [18, "prohibited"],
  [19, "stale NXDOMAIN answer"],
  [20, "not authoritative"],
  [21, "not supported"],
  [22, "no reachable authority"],
  [23, "network error"],
  [24, "invalid data"],
]);

export function rcodeName(rcode: number): string {
  return RCODES.get(rcode) ?? `RCODE${rcode}`;
}

export function extendedErrorName(code: number): string {
  return EXTENDED_ERRORS.get(code) ?? `extended error ${code}`;
}

export const RCODE_NAMES: readonly string[] = [...RCODES.values()];

/** What `rcodeName` writes, in any letter case, or a number; undefined for what is no response code. */
export function rcodeNumber(text: string): number | undefined {
  const word = text.toUpperCase().replace(/^RCODE/, "");
  if (/^\d{1,2}$/.test(word)) return Number(word);
  return [...RCODES].find(([, name]) => name === word)?.[0];
}

/** What a reply's header says; an OPT may have further bits. */
export function rcodeOf(reply: Uint8Array): number {
  return (reply[3] as number) & 15;
}
