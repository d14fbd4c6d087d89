// Compares the replies of both resolvers. Replies that a resolver makes itself must be equal octet by octet, except for the
// order of the answers, which both shuffle for every query. Replies from upstream may be compressed differently, and must
// then be equal in all other respects.

import type { Outcome } from "./client.ts";
import { type RawMessage, type RawRecord, readMessage } from "./message.ts";
import { TYPE } from "./octets.ts";

// In what respect two messages must be equal.
export type Measure = "octets" | "records" | "question";

// A known difference, so it has its own text.
export const FILLED_UP = "data are filled up with zeros";

// Replies that take longer than this waited for a server; the time shows for how many.
const LATE_MS = 1_500;
const LATE_APART_MS = 1_500;
const LATER = "one is later than the other";

// undefined if they are equal.
export function difference(docker: Outcome, ours: Outcome, measure: Measure): string | undefined {
  if (docker.ended !== ours.ended) return "they end differently";
  if (docker.replies.length !== ours.replies.length) return "they have different numbers of replies";
  for (const [index, reply] of docker.replies.entries()) {
    const found = replyDifference(octetsOf(reply), octetsOf(ours.replies[index] ?? ""), measure);
    if (found !== undefined) return docker.replies.length > 1 ? `reply ${index + 1}: ${found}` : found;
  }
  if (Math.max(docker.elapsedMs, ours.elapsedMs) < LATE_MS) return undefined;
  return Math.abs(docker.elapsedMs - ours.elapsedMs) > LATE_APART_MS ? LATER : undefined;
}

// Whether the difference may be caused by a busy machine, on which a resolver gives up on a server that would have answered
// in time: then it does not occur each time.
export function isByTime(what: string, ...outcomes: readonly Outcome[]): boolean {
  return what === LATER || outcomes.some(({ ended, elapsedMs }) => ended === "by time" || elapsedMs >= LATE_MS);
}

export function replyDifference(docker: Buffer, ours: Buffer, measure: Measure): string | undefined {
  if (!docker.subarray(0, 2).equals(ours.subarray(0, 2))) return "the ids differ";
  const [theirs, own] = [readMessage(docker), readMessage(ours)];
  if (theirs.header !== own.header) return "the headers differ";
  if (theirs.questions.join() !== own.questions.join()) return "the questions differ";
  if (measure === "question") return undefined;
  if (theirs.rest !== own.rest) return "what follows the records differs";
  if (measure === "records") return recordsDifference(theirs, own);
  if (theirs.length !== own.length) return "the lengths differ";
  if (theirs.records.length !== own.records.length) return "the numbers of records differ";
  // Which addresses a truncated reply omits is random.
  if (theirs.isTruncated && areAddresses(theirs) && areAddresses(own)) return undefined;
  return sortedOctets(theirs) === sortedOctets(own) ? undefined : "the records differ";
}

function recordsDifference(theirs: RawMessage, own: RawMessage): string | undefined {
  if (recordsOf(theirs, recordFields) === recordsOf(own, recordFields)) return undefined;
  return recordsOf(theirs, fieldsWithoutZeros) === recordsOf(own, fieldsWithoutZeros)
    ? FILLED_UP
    : "the records differ";
}

function recordsOf({ records }: RawMessage, fieldsOf: (record: RawRecord) => unknown): string {
  return JSON.stringify(records.map(fieldsOf));
}

function recordFields({ section, owner, type, class: class_, ttl, data }: RawRecord): unknown {
  return [section, owner, type, class_, ttl, data];
}

function fieldsWithoutZeros(record: RawRecord): unknown {
  return recordFields({ ...record, data: record.data.replace(/(00)+$/, "") });
}

function sortedOctets({ records }: RawMessage): string {
  return records
    .map(({ section, octets }) => `${section} ${octets}`)
    .toSorted()
    .join("\n");
}

function areAddresses({ records }: RawMessage): boolean {
  return records.every(
    ({ section, type }) => type === TYPE.OPT || (section === "answer" && (type === TYPE.A || type === TYPE.AAAA)),
  );
}

export function readable(outcome: Outcome): string {
  const replies = outcome.replies.map((reply) => readableMessage(octetsOf(reply)));
  return [`${outcome.ended}, ${outcome.elapsedMs} ms`, ...replies].join("\n    ");
}

export function readableMessage(octets: Buffer): string {
  const { length, header, questions, records, rest } = readMessage(octets);
  const id = octets.toString("hex", 0, 2);
  return [
    `${length} octets, id ${id}, flags ${header.slice(0, 4)}, counts ${header.slice(4).replaceAll(/(.{4})(?!$)/g, "$1 ")}`,
    ...questions.map((question) => `  question ${readableQuestion(question)}`),
    ...records.map((record) => `  ${readableRecord(record)}`),
    ...(rest === "" ? [] : [`  rest ${rest}`]),
  ].join("\n    ");
}

function readableQuestion(question: string): string {
  const [name = "", typeAndClass = ""] = question.split(" ");
  const fixed = octetsOf(typeAndClass);
  return `${readableName(name)} type ${fixed.readUInt16BE(0)} class ${fixed.readUInt16BE(2)}`;
}

function readableRecord({ section, owner, type, class: class_, ttl, data }: RawRecord): string {
  return `${section} ${readableName(owner)} type ${type} class ${class_} ttl ${ttl} data ${data}`;
}

function readableName(octets: string): string {
  const labels: string[] = [];
  const name = octetsOf(octets);
  for (let at = 0, length = name[0] ?? 0; length > 0; at += 1 + length, length = name[at] ?? 0) {
    labels.push(JSON.stringify(name.toString("latin1", at + 1, at + 1 + length)).slice(1, -1));
  }
  return `${labels.join(" . ")} .`;
}

function octetsOf(text: string): Buffer {
  return Buffer.from(text, "hex");
}
