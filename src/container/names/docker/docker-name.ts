/**
 * Names as Docker has them: text, as the user typed it. It writes a query's name as text too, with a backslash before
 * whatever is special, and compares the two. So a typed name is asked for by the one wire name that is written like it,
 * backslashes and all; and where no wire name is written like it, by none.
 */
import { LABEL_BYTES_MAX, NAME_BYTES_MAX } from "../../../base/dns/name.ts";

const DOT = 0x2e;
const BACKSLASH = 0x5c;
/** What Docker's library writes with a backslash before it; what is no printable ASCII it writes as \DDD. */
const SPECIAL = new Set([..." .'@;()\"\\"].map((character) => character.charCodeAt(0)));
/** Begins a key that is no wire name; a label is never so long. */
const UNSPELLABLE = 0xff;

/** The wire labels of the name that Docker writes exactly so; undefined where there is none. */
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

/** Under what a container's name is filed: letter case does not count. Links find what no query can spell. */
export function nameKey(text: string): Uint8Array {
  // Go, unlike JavaScript, has one small letter for the capital I with a dot: the plain one.
  const lower = text.replaceAll("\u0130", "i").toLowerCase();
  return spelledLabels(lower) ?? Buffer.concat([Buffer.of(UNSPELLABLE), Buffer.from(lower)]);
}

/**
 * The name on the wire, with its end, as Docker's library packs it for an answer: it reads backslashes and takes all else
 * as it is, however long the whole may be. Undefined where it cannot.
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
