/**
 * AddressKey: an address as a key of a table, and the key that a reverse name stands for.
 */
const IPV4_LABELS = 4;
const IPV6_LABELS = 32;
const DECIMAL = /^(?:0|[1-9]\d{0,2})$/;
const NIBBLE = /^[0-9a-f]$/;
const BYTE_MAX = 255;

/** Its bytes, one a character. */
export function addressKey(address: Uint8Array): string {
  return String.fromCharCode(...address);
}

/** Of the labels of a name below in-addr.arpa or ip6.arpa; undefined where they are no whole address. */
export function reverseKey(labels: Uint8Array, length: number): string | undefined {
  const texts: string[] = [];
  for (let at = 0; at < length && texts.length <= IPV6_LABELS; at += 1 + (labels[at] as number)) {
    texts.push(Buffer.from(labels.subarray(at + 1, at + 1 + (labels[at] as number))).toString("latin1"));
  }
  texts.reverse();
  if (texts.length === IPV4_LABELS && texts.every((text) => DECIMAL.test(text) && Number(text) <= BYTE_MAX)) {
    return String.fromCharCode(...texts.map(Number));
  }
  if (texts.length !== IPV6_LABELS || !texts.every((text) => NIBBLE.test(text))) return undefined;
  return Buffer.from(texts.join(""), "hex").toString("latin1");
}
