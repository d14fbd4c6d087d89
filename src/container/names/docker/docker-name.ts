/**
 * DockerName: Docker's names as wire names. Docker keeps a name as the text that the user typed, converts a query's
 * name to text with a backslash before special characters, and compares the two texts. So a typed name matches the one
 * wire name whose text is equal, backslashes included, or no wire name at all.
 */
import { LABEL_BYTES_MAX, NAME_BYTES_MAX } from "../../../base/dns/name.ts";

const DOT = 0x2e;
const BACKSLASH = 0x5c;
/** Docker's DNS library writes a backslash before these; other than printable ASCII it writes as \DDD. */
const SPECIAL = new Set([..." .'@;()\"\\"].map((character) => character.charCodeAt(0)));
/** The first byte of a key that is not a wire name: no label has this length. */
const UNSPELLABLE = 0xff;

/** The wire labels that Docker converts to exactly this text; undefined if there are none. */
export function spelledLabels(text: string): Uint8Array | undefined {
  if (text === "") return new Uint8Array(0);
  const labels: number[][] = [[]];
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === DOT) {
      labels.push([]);
    } else if (code === BACKSLASH) {
      const number = /^\d{3}/.exec(text.slice(at + 1, at + 4))?.[0];
      const byte = number === undefined ? text.charCodeAt(at + 1) : Number(number);
      const isDue = number === undefined ? SPECIAL.has(byte) : byte < 256 && !isPrintable(byte);
      if (!isDue) return undefined;
      labels.at(-1)?.push(byte);
      at += number?.length ?? 1;
    } else if (isPrintable(code) && !SPECIAL.has(code)) {
      labels.at(-1)?.push(code);
    } else {
      return undefined;
    }
  }
  const wire = Buffer.from(labels.flatMap((label) => [label.length, ...label]));
  return labels.every(({ length }) => length > 0 && length <= LABEL_BYTES_MAX) && wire.length <= NAME_BYTES_MAX
    ? wire
    : undefined;
}

/** The table key of a container's name, case-insensitive. Links can have targets that no query can spell. */
export function nameKey(text: string): Uint8Array {
  // Go, unlike JavaScript, lower-cases the capital I with a dot to a plain i.
  const lower = text.replaceAll("\u0130", "i").toLowerCase();
  return spelledLabels(lower) ?? Buffer.concat([Buffer.of(UNSPELLABLE), Buffer.from(lower)]);
}

/**
 * The wire name, with its final zero byte, as Docker's library packs it for an answer: it interprets backslashes,
 * copies everything else and does not limit the whole length. Undefined if it fails.
 */
export function packedName(text: string): Uint8Array | undefined {
  const bytes = Buffer.from(/(^|[^\\])(\\\\)*\.$/.test(text) ? text : `${text}.`);
  const packed: number[] = [];
  let label: number[] = [];
  let isEnded = false;
  for (let at = 0; at < bytes.length; at++) {
    let byte = bytes[at] as number;
    isEnded = byte === DOT;
    if (isEnded) {
      if (label.length === 0 || label.length > LABEL_BYTES_MAX) return undefined;
      packed.push(label.length, ...label);
      label = [];
      continue;
    }
    if (byte === BACKSLASH) {
      const number = /^\d{3}/.exec(bytes.toString("latin1", at + 1, at + 4))?.[0];
      byte = number === undefined ? (bytes[at + 1] ?? 0) : Number(number) & 0xff;
      at += number?.length ?? 1;
    }
    label.push(byte);
  }
  return isEnded ? Buffer.from([...packed, 0]) : undefined;
}

function isPrintable(byte: number): boolean {
  return byte >= 0x20 && byte <= 0x7e;
}
