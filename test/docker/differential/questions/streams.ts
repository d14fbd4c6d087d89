// Questions about TCP connections: several queries on one, split into pieces, incomplete, too many, or none.

import { TYPE, hex, opt, record, u16 } from "../octets.ts";
import { type Question, SLOW_WAIT_MS, inStream, query } from "../question.ts";

const QUERIES_MAX = 128;

export function streamQuestions(): Question[] {
  const local = query({ name: "alpha" });
  const reverse = query({ name: "nobody.in-addr.arpa", type: TYPE.PTR });
  const upstream = query({ name: "x2.ok.test" });
  const slow = query({ name: "x2.300.slow.test" });
  const malformed = query({ name: hex("41 00") });
  const signed = query({ name: "alpha", records: [record({ type: TYPE.TSIG, class: 255, data: u16(0) })] });
  const many = (count: number): Buffer[] => Array.from({ length: count }, () => local);
  const stream = (
    label: string,
    messages: readonly Buffer[],
    options: Parameters<typeof inStream>[3] = {},
  ): Question => {
    return inStream("plain", `stream: ${label}`, messages, options);
  };
  return [
    stream("local and upstream", [local, upstream, local, reverse, local]),
    stream("slow first", [slow, local, upstream]),
    stream("in single octets", [local, upstream], { chunk: 3 }),
    stream("in the middle of a length", [local, local], { chunk: local.length + 3 }),
    stream("malformed first", [malformed, local]),
    stream("signed first", [signed, local]),
    stream("NOTIMP first", [query({ name: "alpha", opcode: 5 }), local]),
    stream("a reply first", [query({ name: "alpha", flags: 0x8000 }), local], { untilClosed: true, waitMs: 1_000 }),
    stream("short first", [hex("0000"), local], { untilClosed: true, waitMs: 1_000 }),
    stream("empty first", [Buffer.alloc(0), local], { untilClosed: true, waitMs: 1_000 }),
    stream("header first", [local.subarray(0, 12), local], { untilClosed: true, waitMs: 1_000 }),
    stream("half-closed", [local, upstream], { isHalfClosed: true, untilClosed: true }),
    stream("half-closed with something slow", [slow], { isHalfClosed: true, untilClosed: true }),
    stream("half-closed midway", [local], { tail: hex("0020 0000"), isHalfClosed: true, untilClosed: true }),
    stream("half-closed with half a length", [local], { tail: hex("00"), isHalfClosed: true, untilClosed: true }),
    stream("half-closed at once", [], { isHalfClosed: true, untilClosed: true }),
    stream(`${QUERIES_MAX} queries`, many(QUERIES_MAX), { untilClosed: true }),
    stream(
      "many upstream queries",
      Array.from({ length: 40 }, () => upstream),
    ),
    stream("a huge message", [query({ name: "alpha", tail: Buffer.alloc(60_000) })]),
    stream("a huge message with OPT", [query({ name: "alpha", records: [opt()], tail: Buffer.alloc(65_000) })]),
    stream("nothing", [], { untilClosed: true, waitMs: SLOW_WAIT_MS }),
    stream("half a length", [], { tail: hex("00"), untilClosed: true, waitMs: SLOW_WAIT_MS }),
    stream("half a message", [], { tail: hex("0020 0000"), untilClosed: true, waitMs: SLOW_WAIT_MS }),
    stream("silence after one", [local], { untilClosed: true, waitMs: SLOW_WAIT_MS }),
    stream("silence after an upstream one", [upstream], { untilClosed: true, waitMs: SLOW_WAIT_MS }),
    stream("half a message after one", [local], { tail: hex("0020 0000"), untilClosed: true, waitMs: SLOW_WAIT_MS }),
    stream("silence after a malformed one", [malformed], { untilClosed: true, waitMs: SLOW_WAIT_MS }),
    stream("silence after one without a reply", [hex("0000")], { untilClosed: true, waitMs: SLOW_WAIT_MS }),
  ];
}
