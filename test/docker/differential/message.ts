// RawMessage: a DNS message parsed octet by octet, without validation. Names inside records are decompressed, so that two
// messages that differ only in compression parse to the same result.

import { TYPE } from "./octets.ts";

export type RawRecord = {
  readonly section: "answer" | "authority" | "additional";
  // As hex, in the letter case of the message.
  readonly owner: string;
  readonly type: number;
  readonly class: number;
  readonly ttl: number;
  readonly data: string;
  // The octets as in the message.
  readonly octets: string;
};

export type RawMessage = {
  readonly length: number;
  // The header without the id, as hex.
  readonly header: string;
  readonly isTruncated: boolean;
  readonly questions: readonly string[];
  readonly records: readonly RawRecord[];
  // What follows the last record, or what begins with the first part that cannot be parsed.
  readonly rest: string;
};

const SECTIONS = ["answer", "authority", "additional"] as const;
const POINTERS_MAX = 127;

// Per type: how many octets precede the names in the record data, and how many names there are.
const NAMES_IN: ReadonlyMap<number, readonly [number, number]> = new Map([
  [TYPE.NS, [0, 1]],
  [3, [0, 1]],
  [4, [0, 1]],
  [TYPE.CNAME, [0, 1]],
  [TYPE.SOA, [0, 2]],
  [7, [0, 1]],
  [8, [0, 1]],
  [9, [0, 1]],
  [TYPE.PTR, [0, 1]],
  [14, [0, 2]],
  [TYPE.MX, [2, 1]],
  [TYPE.RP, [0, 2]],
  [18, [2, 1]],
  [21, [2, 1]],
  [TYPE.SIG, [18, 1]],
  [26, [2, 2]],
  [TYPE.SRV, [6, 1]],
  [36, [2, 1]],
  [TYPE.DNAME, [0, 1]],
  [TYPE.RRSIG, [18, 1]],
  [TYPE.NSEC, [0, 1]],
]);

export function readMessage(octets: Buffer): RawMessage {
  const count = (index: number): number => (octets.length >= 12 ? octets.readUInt16BE(4 + index * 2) : 0);
  const questions: string[] = [];
  const records: RawRecord[] = [];
  let at = Math.min(12, octets.length);
  let isReadable = true;
  for (let left = count(0); left > 0 && isReadable; left--) {
    const name = nameAt(octets, at);
    isReadable = name !== undefined && name.end + 4 <= octets.length;
    if (name === undefined || !isReadable) break;
    questions.push(`${name.octets.toString("hex")} ${octets.toString("hex", name.end, name.end + 4)}`);
    at = name.end + 4;
  }
  for (const [index, section] of SECTIONS.entries()) {
    for (let left = count(index + 1); left > 0 && isReadable; left--) {
      const found = recordAt(octets, at, section);
      isReadable = found !== undefined;
      if (found === undefined) break;
      records.push(found.record);
      at = found.end;
    }
  }
  return {
    length: octets.length,
    header: octets.toString("hex", 2, 12),
    isTruncated: ((octets[2] ?? 0) & 2) !== 0,
    questions,
    records,
    rest: octets.toString("hex", at),
  };
}

type ParsedRecord = { readonly record: RawRecord; readonly end: number };

function recordAt(octets: Buffer, at: number, section: RawRecord["section"]): ParsedRecord | undefined {
  const name = nameAt(octets, at);
  if (name === undefined || name.end + 10 > octets.length) return undefined;
  const start = name.end + 10;
  const end = start + octets.readUInt16BE(name.end + 8);
  if (end > octets.length) return undefined;
  const type = octets.readUInt16BE(name.end);
  const record = {
    section,
    owner: name.octets.toString("hex"),
    type,
    class: octets.readUInt16BE(name.end + 2),
    ttl: octets.readUInt32BE(name.end + 4),
    data: dataOf(octets, type, start, end).toString("hex"),
    octets: octets.toString("hex", at, end),
  };
  return { record, end };
}

// The data with its names decompressed; unchanged if it does not have the format of its type.
function dataOf(octets: Buffer, type: number, start: number, end: number): Buffer {
  const [before = 0, names = 0] = NAMES_IN.get(type) ?? [];
  const parts = [octets.subarray(start, Math.min(end, start + before))];
  let at = start + before;
  for (let left = names; left > 0; left--) {
    const name = at < end ? nameAt(octets, at) : undefined;
    if (name === undefined || name.end > end) return octets.subarray(start, end);
    parts.push(name.octets);
    at = name.end;
  }
  return Buffer.concat([...parts, octets.subarray(Math.min(at, end), end)]);
}

// A decompressed name with its final zero octet, and where it ends in the message.
function nameAt(octets: Buffer, start: number): { readonly octets: Buffer; readonly end: number } | undefined {
  const labels: Buffer[] = [];
  let end: number | undefined;
  let pointers = 0;
  for (let at = start; ;) {
    const length = octets[at];
    if (length === undefined) return undefined;
    if (length >= 0xc0) {
      if (at + 1 >= octets.length || (pointers += 1) > POINTERS_MAX) return undefined;
      end ??= at + 2;
      at = octets.readUInt16BE(at) & 0x3fff;
    } else if (length > 63) {
      return undefined;
    } else {
      labels.push(octets.subarray(at, at + 1 + length));
      at += 1 + length;
      if (at > octets.length) return undefined;
      if (length === 0) return { octets: Buffer.concat(labels), end: end ?? at };
    }
  }
}
