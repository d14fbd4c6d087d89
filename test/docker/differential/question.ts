// Owns one question of the differential test: who asks it, how, and the octets of it. The same question goes to both
// resolvers; only the id differs, by which the world's servers tell who asks.

import { FLAG, TYPE, u16, wireName } from "./octets.ts";

export type Question = {
  // For people.
  readonly label: string;
  // The container in whose namespace it is asked.
  readonly from: string;
  readonly transport: "udp" | "tcp";
  // By UDP one; by TCP any number on one connection.
  readonly messages: readonly Buffer[];
  // By TCP, what follows the messages and is none.
  readonly tail?: Buffer;
  // By TCP, octets written at once; the rest follows a moment later.
  readonly chunk?: number;
  // By TCP, says after the last octet that there will be none.
  readonly isHalfClosed?: boolean;
  // Waits for the end of the connection even when all replies are there.
  readonly untilClosed?: boolean;
  // What servers get of a question in which something is out of shape is between the resolver and them: only its name,
  // type and flags have to arrive.
  readonly isOdd?: boolean;
  // Silence for so long is silence.
  readonly waitMs: number;
};

export type QueryParts = {
  // A name as of wireName, or its octets.
  readonly name?: string | Buffer;
  readonly type?: number;
  readonly class?: number;
  readonly opcode?: number;
  // Those of the second word of the header, "recursion desired" unless told otherwise.
  readonly flags?: number;
  // Behind the question, in whatever section the counts say.
  readonly records?: readonly Buffer[];
  // Of the four sections, where they are not one question and the records as additional ones.
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
// Three servers that say nothing, each for four seconds.
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
  how: Partial<Pick<Question, "tail" | "chunk" | "isHalfClosed" | "untilClosed" | "waitMs">> = {},
): Question {
  return { label, from, transport: "tcp", messages, waitMs: WAIT_MS, ...how };
}
