/**
 * The words people use for record types and response codes (RFC 1035 and its followers); a number without one is written as
 * RFC 3597 says.
 */
const TYPES = new Map<number, string>([
  [1, "A"],
  [2, "NS"],
  [5, "CNAME"],
  [6, "SOA"],
  [12, "PTR"],
  [13, "HINFO"],
  [15, "MX"],
  [16, "TXT"],
  [28, "AAAA"],
  [29, "LOC"],
  [33, "SRV"],
  [35, "NAPTR"],
  [39, "DNAME"],
  [41, "OPT"],
  [43, "DS"],
  [44, "SSHFP"],
  [46, "RRSIG"],
  [47, "NSEC"],
  [48, "DNSKEY"],
  [50, "NSEC3"],
  [52, "TLSA"],
  [64, "SVCB"],
  [65, "HTTPS"],
  [99, "SPF"],
  [251, "IXFR"],
  [252, "AXFR"],
  [255, "ANY"],
  [256, "URI"],
  [257, "CAA"],
]);

const RCODES = [
  "NOERROR",
  "FORMERR",
  "SERVFAIL",
  "NXDOMAIN",
  "NOTIMP",
  "REFUSED",
  "YXDOMAIN",
  "YXRRSET",
  "NXRRSET",
  "NOTAUTH",
  "NOTZONE",
];
const BADVERS = 16;

export function typeWord(type: number): string {
  return TYPES.get(type) ?? `TYPE${type}`;
}

export function rcodeWord(rcode: number): string {
  return rcode === BADVERS ? "BADVERS" : (RCODES[rcode] ?? `RCODE${rcode}`);
}

/** What `rcodeWord` writes, in any letter case, or a number; undefined for what is no response code. */
export function rcodeNumber(text: string): number | undefined {
  const word = text.toUpperCase().replace(/^RCODE/, "");
  if (/^\d{1,2}$/.test(word)) return Number(word);
  if (word === "BADVERS") return BADVERS;
  const index = RCODES.indexOf(word);
  return index === -1 ? undefined : index;
}

export const RCODE_WORDS: readonly string[] = [...RCODES, "BADVERS"];
