/**
 * Domain names in wire format: labels, each with a length byte before it. Tables are keyed by these bytes, so a query
 * is looked up without becoming a string. Names here exclude the terminating zero byte.
 */

export const LABEL_BYTES_MAX = 63;
/** 255 bytes with the terminating zero (RFC 1035, 2.3.4). */
export const NAME_BYTES_MAX = 254;

/** The most labels that a name can have. */
export const LABELS_MAX = 127;
/** A compression pointer has both highest bits set in its first byte; the other bits are part of the offset. */
export const POINTER = 0xc0;
const POINTER_BITS = 0x3f;
export const POINTER_BYTES = 2;

/** The offset in the message that the pointer at `at` refers to. */
export function pointerTarget(bytes: Uint8Array, at: number): number {
  return (((bytes[at] as number) & POINTER_BITS) << 8) | (bytes[at + 1] as number);
}

/** A compression pointer as a 16-bit number. */
export function pointerTo(target: number): number {
  return (POINTER << 8) | target;
}

/** ASCII to lower case, other bytes unchanged (RFC 4343). */
export const FOLD: Uint8Array = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte,
);

/** Bytes that presentation format escapes with a backslash: Docker compares that text, so such a name never matches. */
const NEEDS_ESCAPE = /[^!-~]|[.();@"\\]/;

/** The wire labels of a dotted name, case preserved; undefined for a name that no query can carry. */
export function wireLabels(name: string): Uint8Array | undefined {
  const parts: Uint8Array[] = [];
  let length = 0;
  for (const label of name.split(".")) {
    if (label === "" || label.length > LABEL_BYTES_MAX || NEEDS_ESCAPE.test(label)) return undefined;
    const part = Buffer.from(String.fromCharCode(label.length) + label, "latin1");
    length += part.length;
    if (length > NAME_BYTES_MAX) return undefined;
    parts.push(part);
  }
  return Buffer.concat(parts);
}

/** As names in text are compared: in lower case, and without the dot of the root. */
export function bareName(name: string): string {
  return name.toLowerCase().replace(/\.$/, "");
}

/** Wire labels in lower case. A length byte is below 64 and not a letter, so folding every byte is right. */
export function folded(labels: Uint8Array): Uint8Array {
  return labels.map((byte) => FOLD[byte] ?? byte);
}

export function sameBytes(a: Uint8Array, aStart: number, b: Uint8Array, bStart: number, length: number): boolean {
  for (let i = 0; i < length; i++) if (a[aStart + i] !== b[bStart + i]) return false;
  return true;
}

/** The presentation format of wire labels: dots between labels, unprintable bytes as \DDD. */
export function presentation(bytes: Uint8Array, start: number, end: number): string {
  let text = "";
  for (let at = start; at < end;) {
    const length = bytes[at] ?? 0;
    if (length === 0 || at + 1 + length > end) break;
    if (text !== "") text += ".";
    for (const byte of bytes.subarray(at + 1, at + 1 + length)) text += presentationByte(byte);
    at += 1 + length;
  }
  return text === "" ? "." : text;
}

/** The wire labels of a name in presentation format; undefined if it is too long for one. */
export function presentedLabels(text: string): Uint8Array | undefined {
  const parts = (text.match(/(?:\\\d{3}|\\\D|[^.\\])+/g) ?? []).map((label) => {
    const bytes = label.replaceAll(/\\(\d{3}|\D)/g, (_, escaped: string) =>
      escaped.length === 1 ? escaped : String.fromCharCode(Number(escaped)),
    );
    return bytes.length > LABEL_BYTES_MAX
      ? undefined
      : Buffer.from(String.fromCharCode(bytes.length) + bytes, "latin1");
  });
  if (parts.includes(undefined)) return undefined;
  const labels = Buffer.concat(parts as Buffer[]);
  return labels.length > NAME_BYTES_MAX ? undefined : labels;
}

function presentationByte(byte: number): string {
  const character = String.fromCharCode(byte);
  if (byte < 0x21 || byte > 0x7e) return `\\${String(byte).padStart(3, "0")}`;
  return NEEDS_ESCAPE.test(character) ? `\\${character}` : character;
}
