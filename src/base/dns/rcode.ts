/** Response codes and their usual names. */
export const RCODE = {
  NOERROR: 0,
  FORMERR: 1,
  SERVFAIL: 2,
  NXDOMAIN: 3,
  NOTIMP: 4,
  REFUSED: 5,
  YXDOMAIN: 6,
  YXRRSET: 7,
  NXRRSET: 8,
  NOTAUTH: 9,
  NOTZONE: 10,
  BADVERS: 16,
  BADCOOKIE: 23,
} as const;

const NAMES = new Map<number, string>(Object.entries(RCODE).map(([name, rcode]) => [rcode, name]));

export function rcodeName(rcode: number): string {
  return NAMES.get(rcode) ?? `RCODE${rcode}`;
}

export const RCODE_NAMES: readonly string[] = [...NAMES.values()];

/** Parses what `rcodeName` writes, in any letter case, or a number; undefined for anything else. */
export function rcodeNumber(text: string): number | undefined {
  const word = text.toUpperCase().replace(/^RCODE/, "");
  if (/^\d{1,2}$/.test(word)) return Number(word);
  return [...NAMES].find(([, name]) => name === word)?.[0];
}
