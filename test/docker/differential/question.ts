// Question: one question of the differential test, with its octets, its container and its transport. Both resolvers get the
// same question with different ids, from which the upstream servers tell the resolvers apart.

import { FLAG, TYPE, u16, wireName } from "./octets.ts";

export type Question = {
  // For reports.
  readonly label: string;
  // The role of the container that sends it.
  readonly from: string;
  readonly transport: "udp" | "tcp";
  // Exactly one over UDP; any number on one connection over TCP.
  readonly messages: readonly Buffer[];
  // TCP: octets after the messages that are not a message.
  readonly tail?: Buffer;
  // TCP: how many octets to write at once; the rest follows a moment later.
  readonly chunk?: number;
  // TCP: closes the sending side after the last octet.
  readonly isHalfClosed?: boolean;
  // TCP: waits for the end of the connection, even after all replies have arrived.
  readonly untilClosed?: boolean;
  // A malformed question may be forwarded in another form: only its name, type and flags must reach the servers.
  readonly isOdd?: boolean;
  // After this time without a reply, the outcome is a timeout.
  readonly waitMs: number;
};

export type QueryParts = {
  // A name for wireName, or its octets.
  readonly name?: string | Buffer;
  readonly type?: number;
  readonly class?: number;
  readonly opcode?: number;
  // Flags in the second word of the header; default: recursion desired.
  readonly flags?: number;
  // After the question; the counts decide in which section they are.
  readonly records?: readonly Buffer[];
  // Of the four sections; default: one question, and the records in the additional section.
  readonly counts?: readonly [number, number, number, number];
  readonly tail?: Buffer;
};

export function query({ name = ".", type = TYPE.A, class: class_ = 1, ...rest }: QueryParts): Buffer {
  const { opcode = 0, flags = FLAG.RD, records = [], tail = Buffer.alloc(0) } = rest;
  const counts = rest.counts ?? [1, 0, 0, records.length];
  const octets = typeof name === "string" ? wireName(name) : name;
  return Buffer.concat([u16(0, flags | (opcode << 11), ...counts), octets, u16(type, class_), ...records, tail]);
}

export const WAIT_MS = 4_000;
// Three servers that do not reply, each for four seconds.
export const SLOW_WAIT_MS = 14_000;

export function byUdp(from: string, label: string, message: Buffer, waitMs = WAIT_MS): Question {
  return { label, from, transport: "udp", messages: [message], waitMs };
}

export function byTcp(from: string, label: string, message: Buffer, waitMs = WAIT_MS): Question {
  return { label, from, transport: "tcp", messages: [message], waitMs };
}

export function odd(questions: readonly Question[]): Question[] {
  return questions.map((question) => Object.assign({}, question, { isOdd: true }));
}

export function inStream(
  from: string,
  label: string,
  messages: readonly Buffer[],
  options: Partial<Pick<Question, "tail" | "chunk" | "isHalfClosed" | "untilClosed" | "waitMs">> = {},
): Question {
  return { label, from, transport: "tcp", messages, waitMs: WAIT_MS, ...options };
}
