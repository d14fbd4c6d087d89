/**
 * ErrorText: the text of an extended error that a server has sent (RFC 8914). It ends up in logs, terminals and pages, here and at
 * the client.
 */
import { u16 } from "../../base/dns/bytes.ts";
import { ERROR_CODE_BYTES } from "../../base/dns/extended-error.ts";
import { OPTION, OPTION_FIXED_BYTES } from "../../base/dns/opt.ts";

/** Control characters manipulate terminals, bidirectional ones reverse what is read. */
const UNPRINTABLE = /[\p{Cc}\p{Bidi_Control}]/gu;
const NOT_ASCII = /[^ -~]/g;

/** Replaces, in the options from `start`, what no text may contain, with question marks. */
export function cleanErrorTexts(message: Buffer, start: number, end: number): void {
  for (let at = start; at + OPTION_FIXED_BYTES <= end;) {
    const after = at + OPTION_FIXED_BYTES + u16(message, at + 2);
    if (after > end) return;
    if (u16(message, at) === OPTION.EXTENDED_ERROR) {
      cleanText(message.subarray(Math.min(after, at + OPTION_FIXED_BYTES + ERROR_CODE_BYTES), after));
    }
    at = after;
  }
}

/** The length stays the same, because offsets in the message depend on it. */
function cleanText(bytes: Buffer): void {
  const text = bytes.toString();
  const clean = bytes.equals(Buffer.from(text))
    ? text.replaceAll(UNPRINTABLE, replaced)
    : bytes.toString("latin1").replaceAll(NOT_ASCII, "?");
  if (clean !== text) bytes.write(clean);
}

function replaced(character: string): string {
  return "?".repeat(Buffer.byteLength(character));
}
