/** Extended DNS errors (RFC 8914): the reason for a reply, as an EDNS option. */
import { setU16 } from "./bytes.ts";
import { OPTION, OPTION_FIXED_BYTES } from "./opt.ts";

/** The codes that dns11 sends. */
export const EXTENDED_ERROR = {
  other: 0,
  staleAnswer: 3,
  cachedError: 13,
  blocked: 15,
  prohibited: 18,
  staleDenial: 19,
  unreachable: 22,
  network: 23,
} as const;

/** The names of the codes (RFC 8914, 4). */
const NAMES: ReadonlyMap<number, string> = new Map([
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

/** The size of the code, which precedes the text. */
export const ERROR_CODE_BYTES = 2;
/** As much as fits beside the longest name in the smallest reply. */
const TEXT_MAX = 200;

export function extendedErrorName(code: number): string {
  return NAMES.get(code) ?? `extended error ${code}`;
}

/** The option, with a human-readable text. */
export function errorOption(code: number, text: string): Buffer {
  const textBytes = Buffer.from(text.slice(0, TEXT_MAX), "latin1");
  const option = Buffer.alloc(OPTION_FIXED_BYTES + ERROR_CODE_BYTES + textBytes.length);
  setU16(option, 0, OPTION.EXTENDED_ERROR);
  setU16(option, 2, ERROR_CODE_BYTES + textBytes.length);
  setU16(option, OPTION_FIXED_BYTES, code);
  textBytes.copy(option, OPTION_FIXED_BYTES + ERROR_CODE_BYTES);
  return option;
}
