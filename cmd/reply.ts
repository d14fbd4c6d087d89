/**
 * A reply for people: its code, its records in columns, and why it is not better where somebody said so.
 */
import type { RecordText, ReplyText } from "../src/base/model/reply-text.ts";
import { printable } from "./printable.ts";
import { table } from "./table.ts";

/** What servers told beside the code: records, extended errors. */
export function replyLines({
  answers,
  authority,
  additional,
  extendedErrors,
  isTruncated,
  isUnreadable,
}: Omit<ReplyText, "rcode">): string {
  return [
    section("", answers),
    answers.length === 0 ? section("authority", authority) : "",
    section("additional", additional),
    ...extendedErrors.map(
      ({ code, name, text }) => `extended error ${code}, ${name}${text === "" ? "" : `: ${printable(text)}`}\n`,
    ),
    isTruncated ? "truncated\n" : "",
    isUnreadable ? "there are records that cannot be read\n" : "",
  ].join("");
}

function section(title: string, records: readonly RecordText[]): string {
  if (records.length === 0) return "";
  const rows = records.map(({ name, ttl, type, data }) => [name, String(ttl), type, data]);
  return `${title === "" ? "" : `${title}:\n`}${table(["NAME", "TTL", "TYPE", "DATA"], rows)}`;
}

export function milliseconds(ms: number): string {
  return `${ms.toFixed(1)} ms`;
}
