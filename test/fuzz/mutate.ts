// Owns the mutations of a message.

import type { Random } from "./random.ts";

type Mutation = (message: Buffer, random: Random, others: readonly Buffer[]) => Buffer;

// Values at the limits: ends of ranges, kinds of labels, counts.
const SPECIAL_OCTETS = [0, 1, 2, 0x0b, 0x0c, 0x29, 0x3f, 0x40, 0x7f, 0x80, 0xbf, 0xc0, 0xc1, 0xfe, 0xff];
const TELLING_WORDS = [0, 1, 2, 3, 12, 41, 255, 256, 0x0fff, 0x3fff, 0x7fff, 0x8000, 0xc00c, 0xffff];
const MESSAGE_BYTES_MAX = 65_535;

const flipBit: Mutation = (message, random) => {
  const at = random.below(message.length);
  message[at] = (message[at] ?? 0) ^ (1 << random.below(8));
  return message;
};

const setByte: Mutation = (message, random) => {
  message[random.below(message.length)] = random.once(2) ? random.pick(SPECIAL_OCTETS) : random.below(256);
  return message;
};

const setWord: Mutation = (message, random) => {
  if (message.length < 2) return message;
  message.writeUInt16BE(random.pick(TELLING_WORDS), random.below(message.length - 1));
  return message;
};

const setHeaderWord: Mutation = (message, random) => {
  if (message.length < 12) return message;
  message.writeUInt16BE(random.once(2) ? random.pick(TELLING_WORDS) : random.below(0x10000), 2 + 2 * random.below(5));
  return message;
};

const cut: Mutation = (message, random) => message.subarray(0, random.below(message.length + 1));

const grow: Mutation = (message, random) => Buffer.concat([message, random.bytes(random.below(40))]);

const splice: Mutation = (message, random, others) => {
  const other = random.pick(others);
  return Buffer.concat([
    message.subarray(0, random.below(message.length + 1)),
    other.subarray(random.below(other.length + 1)),
  ]);
};

const repeatPart: Mutation = (message, random) => {
  const from = random.below(message.length);
  const part = message.subarray(from, from + 1 + random.below(60));
  const times = 1 + random.below(4);
  return Buffer.concat([
    message.subarray(0, from),
    ...Array.from({ length: times }, () => part),
    message.subarray(from),
  ]);
};

const dropPart: Mutation = (message, random) => {
  const from = random.below(message.length);
  return Buffer.concat([message.subarray(0, from), message.subarray(from + 1 + random.below(8))]);
};

// To a low offset, to itself, nearby, or anywhere.
const putPointer: Mutation = (message, random) => {
  const at = Math.min(message.length, 12 + random.below(Math.max(1, message.length - 12)));
  const target = random.pick([
    12,
    at,
    at + 2,
    Math.max(0, at - 1 - random.below(12)),
    random.below(message.length + 4),
  ]);
  const pointer = Buffer.of(0xc0 | ((target >> 8) & 0x3f), target & 0xff);
  const kept = random.once(2) ? at : at + 2;
  return Buffer.concat([message.subarray(0, at), pointer, message.subarray(kept)]);
};

const MUTATIONS: readonly Mutation[] = [
  flipBit,
  flipBit,
  setByte,
  setByte,
  setWord,
  setHeaderWord,
  cut,
  grow,
  splice,
  repeatPart,
  dropPart,
  putPointer,
  putPointer,
];

// A copy of the message with up to three mutations; sometimes none. With more mutations a message is refused for the
// first reason, and the others are never reached.
export function mutated(message: Buffer, random: Random, others: readonly Buffer[]): Buffer {
  let spoilt = Buffer.from(message);
  for (let left = random.below(4); left > 0 && spoilt.length > 0; left--) {
    spoilt = Buffer.from(random.pick(MUTATIONS)(spoilt, random, others));
  }
  return spoilt.subarray(0, MESSAGE_BYTES_MAX);
}
