/**
 * A reply from upstream as it is handed on: what can be read of it, and no more. Docker reads a reply and writes it anew,
 * so whoever asked gets counts that are true and nothing behind the last record; the records themselves stay as they are.
 */
import { setU16, u16 } from "../../base/dns/bytes.ts";
import { HEADER_BYTES, QUESTIONS_AT, countAt, rcodeOf } from "../../base/dns/header.ts";
import { TYPE } from "../../base/dns/record-type.ts";
import { MESSAGE_BYTES_MAX } from "../../base/dns/sizes.ts";
import { Records, isReadable } from "./records.ts";

export interface UpstreamReply {
  readonly message: Buffer;
  /** With the upper bits that EDNS adds. */
  readonly rcode: number;
  /** Its last record is a signature of the message (TSIG). */
  readonly isSigned: boolean;
}

const records = new Records();

/**
 * Undefined where it cannot be read: as Docker's library reads it, or as a strict parser does. The reply is corrected in
 * place where that is possible.
 */
export function readReply(message: Buffer, isStrict = false): UpstreamReply | undefined {
  if (!isReadable(message, records, isStrict)) return undefined;
  const { counts, end, missing, optRcode, lastType } = records;
  const isSigned = lastType === TYPE.TSIG;
  // Made whole it would be longer than any message, and nobody could be sent it.
  if (message.length + missing > MESSAGE_BYTES_MAX) return undefined;
  let isCorrected = false;
  for (let section = 0; section < counts.length; section++) {
    const at = countAt(section);
    const count = counts[section] as number;
    isCorrected ||= u16(message, at) !== count;
    setU16(message, at, count);
  }
  // A name may point into the header, and be another one by now, or none.
  if (isCorrected && !isReadable(message, records, isStrict)) return undefined;
  // A bare header has no question, whatever it announces.
  if (message.length === HEADER_BYTES) setU16(message, QUESTIONS_AT, 0);
  const rcode = optRcode | rcodeOf(message);
  if (missing > 0) return { message: Buffer.concat([message, Buffer.alloc(missing)]), rcode, isSigned };
  return { message: end === message.length ? message : message.subarray(0, end), rcode, isSigned };
}
