/**
 * UpstreamReply: the readable part of an upstream reply. Docker parses a reply and writes it again, so its clients get
 * correct counts and no trailing bytes; the records themselves stay unchanged. Read strictly, it has no signature either, which
 * is between the server and us, and extended errors that can be printed.
 */
import { setU16, u16 } from "../../base/dns/bytes.ts";
import { ADDITIONALS_AT, HEADER_BYTES, QUESTIONS_AT, SECTIONS, countAt, rcodeOf } from "../../base/dns/header.ts";
import { cleanErrorTexts } from "./error-text.ts";
import { TYPE } from "../../base/dns/record-type.ts";
import { MESSAGE_BYTES_MAX } from "../../base/dns/sizes.ts";
import { Records, isReadable } from "./records.ts";

export interface UpstreamReply {
  readonly message: Buffer;
  /** It has the upper bits from EDNS. */
  readonly rcode: number;
  /** The last record is a TSIG. */
  readonly isSigned: boolean;
}

const records = new Records();

/**
 * Undefined if it cannot be parsed, as Docker's library or as a strict parser does. The reply is corrected in place if
 * possible.
 */
export function readReply(message: Buffer, isStrict = false): UpstreamReply | undefined {
  if (!isReadable(message, records, isStrict)) return undefined;
  const { counts, end, missing, optRcode, lastType } = records;
  const isSigned = lastType === TYPE.TSIG;
  // Completed, it would exceed the size of a message and could not be sent.
  if (message.length + missing > MESSAGE_BYTES_MAX) return undefined;
  let isCorrected = false;
  for (let section = 0; section < counts.length; section++) {
    const at = countAt(section);
    const count = counts[section] as number;
    isCorrected ||= u16(message, at) !== count;
    setU16(message, at, count);
  }
  // A name may point into the header, which has changed.
  if (isCorrected && !isReadable(message, records, isStrict)) return undefined;
  if (isStrict) cleanErrorTexts(message, records.optDataAt, records.optDataEnd);
  // A bare header has no question, whatever its count says.
  if (message.length === HEADER_BYTES) setU16(message, QUESTIONS_AT, 0);
  const rcode = optRcode | rcodeOf(message);
  if (isStrict && (isSigned || lastType === TYPE.SIG)) {
    const unsigned = withoutLast(message);
    return isReadable(unsigned, records, true) ? { message: unsigned, rcode, isSigned: false } : undefined;
  }
  if (missing > 0) return { message: Buffer.concat([message, Buffer.alloc(missing)]), rcode, isSigned };
  return { message: end === message.length ? message : message.subarray(0, end), rcode, isSigned };
}

/** The message without its last record, a signature. */
function withoutLast(message: Buffer): Buffer {
  setU16(message, ADDITIONALS_AT, (records.counts[SECTIONS - 1] as number) - 1);
  return message.subarray(0, records.lastAt);
}
