/**
 * Reply text: a DNS reply as columns for people, with its extended errors.
 */
import type { RecordText, ReplyText } from "../src/base/model/reply-text.ts";
import { printable } from "./printable.ts";
import { table } from "./table.ts";

/** Everything in the reply except the response code. */
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
    isUnreadable ? "the reply has malformed records\n" : "",
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
