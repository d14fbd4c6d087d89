/**
 * The records behind a question: are they what the counts say, and is there an OPT among them? Nothing is decoded that
 * is not needed, nothing is allocated, and every step is bounded by the length of the message.
 *
 * What counts as malformed is what the library behind Docker's resolver calls so, including what it lets pass: a section
 * that ends early exactly where the message ends is shorter than announced, not broken.
 */

const TYPE_OPT = 41;
const FIXED_BYTES = 10;
const NAME_BYTES_MAX = 254;
/** As many as a name of 255 octets can need; more is a loop. */
const POINTERS_MAX = 126;

/** The offset behind the name at `at`, or -1. Compressed names are followed, because a broken one breaks the message. */
export function skipName(bytes: Uint8Array, start: number, at: number, end: number): number {
  let next = -1;
  let length = 0;
  let pointers = 0;
  let cursor = at;
  for (;;) {
    if (cursor >= end) return -1;
    const byte = bytes[cursor] as number;
    if (byte === 0) return next === -1 ? cursor + 1 : next;
    if (byte < 64) {
      length += byte + 1;
      cursor += byte + 1;
      if (cursor > end || length > NAME_BYTES_MAX) return -1;
    } else if (byte >= 0xc0) {
      if (cursor + 1 >= end || ++pointers > POINTERS_MAX) return -1;
      if (next === -1) next = cursor + 2;
      cursor = start + (((byte & 0x3f) << 8) | (bytes[cursor + 1] as number));
    } else {
      return -1;
    }
  }
}

/** What walking the records of one message found; one object serves many messages. */
export class Records {
  /** How many records of the last section were there. */
  count = 0;
  optCount = 0;
  optUdpSize = 0;
  optVersion = 0;
  isDnssecOk = false;

  reset(): void {
    this.count = 0;
    this.optCount = 0;
    this.optUdpSize = 0;
    this.optVersion = 0;
    this.isDnssecOk = false;
  }

  /** Walks `announced` records from `at`; the offset behind them, or -1 where one is malformed. */
  walk(bytes: Uint8Array, start: number, at: number, end: number, announced: number): number {
    this.count = 0;
    let cursor = at;
    while (this.count < announced && cursor !== end) {
      const fixed = skipName(bytes, start, cursor, end);
      if (fixed === -1 || fixed + FIXED_BYTES > end) return -1;
      const type = u16(bytes, fixed);
      const data = fixed + FIXED_BYTES;
      const dataEnd = data + u16(bytes, fixed + 8);
      if (dataEnd > end) return -1;
      if (dataEnd !== data && !isDataSane(type, bytes, start, data, dataEnd)) return -1;
      if (type === TYPE_OPT) {
        this.optCount++;
        this.optUdpSize = u16(bytes, fixed + 2);
        this.optVersion = bytes[fixed + 5] as number;
        this.isDnssecOk = (bytes[fixed + 6] as number) >= 0x80;
      }
      this.count++;
      cursor = dataEnd;
    }
    return cursor;
  }
}

/** Whether a whole message can be read: header, questions, every record. Bytes behind it do not matter. */
export function isReadable(message: Uint8Array, records: Records): boolean {
  const end = message.length;
  if (end < 12) return false;
  let at = 12;
  for (let left = u16(message, 4); left > 0 && at !== end; left--) {
    at = skipName(message, 0, at, end);
    if (at === -1) return false;
    if (at !== end) at = Math.min(at + 4, end);
  }
  records.reset();
  for (const countAt of [6, 8, 10]) {
    at = records.walk(message, 0, at, end, u16(message, countAt));
    if (at === -1) return false;
  }
  return true;
}

function u16(bytes: Uint8Array, at: number): number {
  return ((bytes[at] as number) << 8) | (bytes[at + 1] as number);
}

/** The types whose data has a shape that a careless or hostile sender gets wrong; all others are opaque. */
function isDataSane(type: number, bytes: Uint8Array, start: number, at: number, end: number): boolean {
  switch (type) {
    case 1: // A
      return end - at === 4;
    case 28: // AAAA
      return end - at === 16;
    case 2: // NS
    case 5: // CNAME
    case 12: // PTR
    case 39: // DNAME
      return skipName(bytes, start, at, end) === end;
    case 15: // MX
      return at + 2 <= end && skipName(bytes, start, at + 2, end) === end;
    case 33: // SRV
      return at + 6 <= end && skipName(bytes, start, at + 6, end) === end;
    case 6: // SOA
      return isSoaSane(bytes, start, at, end);
    case 16: // TXT
    case 99: // SPF
      return isTextSane(bytes, at, end);
    case TYPE_OPT:
      return areOptionsSane(bytes, at, end);
    default:
      return true;
  }
}

function isSoaSane(bytes: Uint8Array, start: number, at: number, end: number): boolean {
  const mailbox = skipName(bytes, start, at, end);
  return mailbox !== -1 && skipName(bytes, start, mailbox, end) === end - 20;
}

function isTextSane(bytes: Uint8Array, at: number, end: number): boolean {
  let cursor = at;
  while (cursor < end) cursor += 1 + (bytes[cursor] as number);
  return cursor === end;
}

function areOptionsSane(bytes: Uint8Array, at: number, end: number): boolean {
  let cursor = at;
  while (cursor < end) {
    if (cursor + 4 > end) return false;
    const data = cursor + 4;
    const dataEnd = data + u16(bytes, cursor + 2);
    if (dataEnd > end || !isOptionSane(u16(bytes, cursor), bytes, data, dataEnd - data)) return false;
    cursor = dataEnd;
  }
  return true;
}

/** The EDNS options with a fixed shape. */
function isOptionSane(code: number, bytes: Uint8Array, at: number, length: number): boolean {
  switch (code) {
    case 1: // long-lived query
      return length >= 18;
    case 2: // update lease
      return length === 4 || length === 8;
    case 8: // client subnet
      return isSubnetSane(bytes, at, length);
    case 9: // expire
      return length === 0 || length >= 4;
    case 11: // TCP keepalive
      return length === 0 || length === 2;
    case 15: // extended error
      return length >= 2;
    default:
      return true;
  }
}

function isSubnetSane(bytes: Uint8Array, at: number, length: number): boolean {
  if (length < 4) return false;
  const family = u16(bytes, at);
  const sourceBits = bytes[at + 2] as number;
  const scopeBits = bytes[at + 3] as number;
  if (family === 0) return sourceBits === 0;
  const bitsMax = family === 1 ? 32 : family === 2 ? 128 : -1;
  return sourceBits <= bitsMax && scopeBits <= bitsMax;
}
