/**
 * Records: validates the records after a question against their counts, and finds the OPT. Only what is needed is
 * decoded, nothing is allocated, and the work is bounded by the length of the message.
 *
 * What is malformed is defined by the DNS library of Docker's embedded DNS, including what it tolerates: a section that
 * ends early, exactly at the end of the message, is short but not malformed.
 */
import { u16 } from "../../base/dns/bytes.ts";
import { HEADER_BYTES, QUESTIONS_AT, SECTIONS, countAt, isTruncated } from "../../base/dns/header.ts";
import { DO, OPT_FLAGS_AT, OPT_RCODE_AT, OPT_RCODE_SHIFT, OPT_SIZE_AT, OPT_VERSION_AT } from "../../base/dns/opt.ts";
import { TYPE } from "../../base/dns/record-type.ts";
import { DATA_LENGTH_AT, QUESTION_FIXED_BYTES, RECORD_FIXED_BYTES } from "../../base/dns/record.ts";
import { isDataValid } from "./data.ts";
import { resetNameSteps, skipName, hasNameSteps } from "./name.ts";

/** The result of reading the records of one message; one object serves many messages. */
export class Records {
  /** Number of records in the last section. */
  count = 0;
  /** Type and offset of the last one of them. */
  lastType = 0;
  lastAt = 0;
  optCount = 0;
  optUdpSize = 0;
  optVersion = 0;
  /** The upper bits of the rcode, shifted into place. */
  optRcode = 0;
  isDnssecOk = false;
  /** Start and end of the options in the OPT. */
  optDataAt = 0;
  optDataEnd = 0;
  /** A reply has a number of records per section, and their end. */
  readonly counts = new Uint16Array(SECTIONS);
  end = 0;
  /** The number of octets of type and class that the question of a reply lacks. */
  missing = 0;

  reset(): void {
    this.lastType = this.lastAt = 0;
    this.count = 0;
    this.optCount = 0;
    this.optUdpSize = 0;
    this.optVersion = 0;
    this.optRcode = 0;
    this.isDnssecOk = false;
    this.optDataAt = 0;
    this.optDataEnd = 0;
  }

  /** Reads `announced` records from `at`; returns the offset after them, or -1 if one is malformed. */
  walk(bytes: Uint8Array, start: number, at: number, end: number, announced: number, isStrict = false): number {
    this.count = 0;
    let cursor = at;
    while (this.count < announced && cursor !== end) {
      const fixed = skipName(bytes, start, cursor, end);
      if (fixed === -1 || fixed + RECORD_FIXED_BYTES > end) return -1;
      const type = u16(bytes, fixed);
      const data = fixed + RECORD_FIXED_BYTES;
      const dataEnd = data + u16(bytes, fixed + DATA_LENGTH_AT);
      if (dataEnd > end || (isStrict && this.count > 0 && this.lastType === TYPE.TSIG)) return -1;
      const isSane = (dataEnd === data && !isStrict) || isDataValid(type, bytes, start, data, dataEnd, isStrict);
      if (!isSane) return -1;
      if (type === TYPE.OPT) {
        this.optCount++;
        this.optUdpSize = u16(bytes, fixed + OPT_SIZE_AT);
        this.optRcode = (bytes[fixed + OPT_RCODE_AT] as number) << OPT_RCODE_SHIFT;
        this.optVersion = bytes[fixed + OPT_VERSION_AT] as number;
        this.isDnssecOk = (bytes[fixed + OPT_FLAGS_AT] as number) >= DO;
        this.optDataAt = data;
        this.optDataEnd = dataEnd;
      }
      this.count++;
      this.lastType = type;
      this.lastAt = cursor;
      cursor = dataEnd;
    }
    return cursor;
  }
}

/**
 * Whether a whole message can be parsed: header, questions, every record. Trailing bytes are ignored. Strict parsing
 * requires that pointers point backwards, that data of known types are complete, and that a TSIG is the last record.
 */
export function isReadable(message: Uint8Array, records: Records, isStrict = false): boolean {
  const end = message.length;
  if (end < HEADER_BYTES) return false;
  resetNameSteps(end, isStrict);
  records.end = HEADER_BYTES;
  records.missing = 0;
  records.counts.fill(0);
  records.reset();
  // The counts of a bare header do not matter.
  if (end === HEADER_BYTES) return true;
  let at = HEADER_BYTES;
  for (let left = u16(message, QUESTIONS_AT); left > 0; left--) {
    at = skipName(message, 0, at, end);
    if (at === -1) return false;
    records.missing = Math.max(0, at + QUESTION_FIXED_BYTES - end);
    if (records.missing % 2 !== 0) return false;
    at = Math.min(at + QUESTION_FIXED_BYTES, end);
  }
  for (let section = 0; section < SECTIONS; section++) {
    // An OPT counts only in the additional section.
    records.reset();
    const announced = u16(message, countAt(section));
    at = records.walk(message, 0, at, end, announced, isStrict);
    // A server may leave the counts as they were when it truncates.
    if (at === -1 || (isStrict && records.count !== announced && !isTruncated(message))) return false;
    if (isStrict && records.lastType === TYPE.TSIG && section < SECTIONS - 1) return false;
    records.counts[section] = records.count;
  }
  records.end = at;
  // Trailing bytes must not extend the limit for names: parsing the message without them must give the same result.
  return !isStrict || hasNameSteps(at, end);
}

/** Where the signature of a query at `offset` begins, counted from there; undefined if its last record is none. */
export function signatureOf(
  { lastType, lastAt }: Records,
  offset: number,
): { readonly at: number; readonly isTsig: boolean } | undefined {
  const isTsig = lastType === TYPE.TSIG;
  return isTsig || lastType === TYPE.SIG ? { at: lastAt - offset, isTsig } : undefined;
}
