/**
 * Owns the replies of scripted name servers: for each word of a scenario what is sent, and how it goes out. Written octet
 * by octet, with names compressed as real servers do it, so that whoever patches a reply it has kept meets pointers.
 */
import type { Act, Word } from "./scenario.ts";
import { questionOctets, type UpstreamQuestion } from "../servers/upstream-question.ts";

export interface Delivery {
  readonly message: Buffer;
  /** "elsewhere": from another port of the same address; "cut": the connection ends in the middle of it. */
  readonly how?: "elsewhere" | "cut";
}

export interface Asked {
  readonly act: Act;
  readonly question: UpstreamQuestion;
  /** The place of the server, from 1. */
  readonly server: number;
  /** How often it was asked for this name, this time included. */
  readonly count: number;
}

interface Parts {
  /** And rcode. */
  readonly flags?: number;
  readonly answer?: readonly Buffer[];
  readonly authority?: readonly Buffer[];
  readonly isPlain?: boolean;
}

const RCODE = { FORMERR: 1, SERVFAIL: 2, NXDOMAIN: 3, NOTIMP: 4, REFUSED: 5 } as const;
const BIT = { QR: 0x8000, TC: 0x0200, RD: 0x0100, RA: 0x0080, AD: 0x0020, CD: 0x0010 } as const;
const OPCODE = 0x7800;
const TYPE = { A: 1, SOA: 6, TXT: 16, AAAA: 28, OPT: 41, RRSIG: 46, PRIVATE: 65280 } as const;
const HEADER_OCTETS = 12;
/** What one more address takes, its name being a pointer. */
const RECORD_OCTETS = 16;
const UDP_SIZE = 1232;
const LIE = hex("c6336442");
const SIGNATURE = hex("0001 0d 02 0000003c 7fffffff 60000000 4f66 04 74657374 00 abababababababababababababababab");

const REPLIES: Readonly<Record<Word, (asked: Asked) => readonly Delivery[]>> = {
  ok: (asked) => one(ok(asked)),
  count: (asked) => one(written(asked, countParts(asked))),
  signed: (asked) => one(written(asked, signedParts(asked))),
  nodata: (asked) => one(written(asked, { authority: [soa(asked)] })),
  "nodata-without-soa": (asked) => one(written(asked, {})),
  nxdomain: (asked) => one(written(asked, { flags: RCODE.NXDOMAIN, authority: [soa(asked)] })),
  "nxdomain-without-soa": (asked) => one(written(asked, { flags: RCODE.NXDOMAIN })),
  servfail: (asked) => one(written(asked, { flags: RCODE.SERVFAIL })),
  refused: (asked) => one(written(asked, { flags: RCODE.REFUSED })),
  formerr: (asked) => one(written(asked, { flags: RCODE.FORMERR })),
  notimp: (asked) => one(written(asked, { flags: RCODE.NOTIMP })),
  "formerr-to-edns": (asked) => one(unlessEdns(asked, RCODE.FORMERR)),
  "notimp-to-edns": (asked) => one(unlessEdns(asked, RCODE.NOTIMP)),
  silent: () => [],
  closed: () => [],
  garbage: ({ question }) => one(Buffer.concat([u16(question.id), Buffer.alloc(30, 0xff)])),
  "wrong-id": (asked) => one(isUdp(asked) ? lie(asked, 0xffff) : ok(asked)),
  "wrong-source": (asked) => (isUdp(asked) ? [{ message: lie(asked), how: "elsewhere" }] : one(ok(asked))),
  "wrong-question": (asked) => one(isUdp(asked) ? aboutAnother(lie(asked)) : ok(asked)),
  truncated: (asked) => one(isUdp(asked) ? written(asked, { flags: BIT.TC }) : ok(asked)),
  midway: (asked) => (isUdp(asked) ? one(written(asked, { flags: BIT.TC })) : [{ message: ok(asked), how: "cut" }]),
  big: (asked) => one(fitting(asked)),
  oversized: (asked) => one(written(asked, bigParts(asked))),
  spoof: (asked) => [...(isUdp(asked) ? lies(asked) : []), ...one(ok(asked))],
};

export function scriptedReply(asked: Asked): readonly Delivery[] {
  return REPLIES[asked.act.word](asked);
}

function one(message: Buffer): readonly Delivery[] {
  return [{ message }];
}

function isUdp({ question }: Asked): boolean {
  return question.transport === "udp";
}

function ok(asked: Asked): Buffer {
  const { server } = asked;
  return written(asked, numbered(asked, hex("c00002"), server, `server ${server}`));
}

/** What tells a number, by the type that was asked for. */
function numbered(asked: Asked, network: Buffer, number: number, text: string): Parts {
  const { type } = asked.question;
  if (type === TYPE.A) return { answer: [record(asked, type, Buffer.concat([network, Buffer.of(number & 0xff)]))] };
  if (type === TYPE.TXT) return { answer: [record(asked, type, string(text))] };
  if (type >= TYPE.PRIVATE) return { answer: [record(asked, type, hex("deadbeef"))] };
  if (type !== TYPE.AAAA) return { authority: [soa(asked)] };
  const data = Buffer.concat([hex("20010db8"), Buffer.alloc(10), u16(number)]);
  return { answer: [record(asked, type, data)] };
}

function countParts(asked: Asked): Parts {
  const { count } = asked;
  return numbered(asked, Buffer.concat([hex("c612"), Buffer.of(count >> 8)]), count, `answer ${count}`);
}

function signedParts(asked: Asked): Parts {
  const { question, server } = asked;
  const isUnchecked = (question.flags & BIT.CD) !== 0;
  const isSecureWanted = question.opt?.dnssecOk === true || (question.flags & BIT.AD) !== 0;
  const parts = numbered(asked, hex("c00002"), server + (isUnchecked ? 100 : 0), `unchecked ${isUnchecked}`);
  const signature = question.opt?.dnssecOk === true ? [record(asked, TYPE.RRSIG, SIGNATURE)] : [];
  return {
    ...parts,
    flags: isSecureWanted && !isUnchecked ? BIT.AD : 0,
    answer: [...(parts.answer ?? []), ...signature],
  };
}

/** An old server, which takes OPT for a mistake and does not answer in kind. */
function unlessEdns(asked: Asked, rcode: number): Buffer {
  return asked.question.opt === undefined ? ok(asked) : written(asked, { flags: rcode, isPlain: true });
}

function lie(asked: Asked, idMask = 0): Buffer {
  const { question } = asked;
  const answer = [record(asked, TYPE.A, LIE)];
  return written({ ...asked, question: { ...question, id: question.id ^ idMask } }, { answer });
}

function lies(asked: Asked): Delivery[] {
  return Array.from({ length: asked.act.amount }, (_, index) => ({ message: lie(asked, 1 + (index % 0xffff)) }));
}

/** The first letter of the name is another one. */
function aboutAnother(message: Buffer): Buffer {
  const at = HEADER_OCTETS + 1;
  message[at] = message[at] === 0x71 ? 0x72 : 0x71;
  return message;
}

function bigParts(asked: Asked): Parts {
  const { act, question } = asked;
  if (question.type === TYPE.TXT) {
    return { answer: [record(asked, TYPE.TXT, texts(act.amount * RECORD_OCTETS))] };
  }
  const data = Array.from({ length: act.amount }, (_, index) => Buffer.concat([hex("c612"), u16(index + 1)]));
  return { answer: data.map((address) => record(asked, TYPE.A, address)) };
}

function fitting(asked: Asked): Buffer {
  const whole = written(asked, bigParts(asked));
  const limit = isUdp(asked) ? Math.max(512, asked.question.opt?.udpSize ?? 0) : 0xffff;
  return whole.length <= limit ? whole : written(asked, { flags: BIT.TC });
}

/** The question goes back octet by octet, whatever its case, type and class. */
function written({ question }: Asked, { flags = 0, answer = [], authority = [], isPlain = false }: Parts): Buffer {
  const octets = questionOctets(Buffer.from(question.message, "hex")) ?? Buffer.alloc(0);
  const opt = question.opt === undefined || isPlain ? [] : [optRecord(question.opt.dnssecOk)];
  const word = (question.flags & (OPCODE | BIT.RD | BIT.CD)) | BIT.QR | BIT.RA | flags;
  const header = u16(question.id, word, 1, answer.length, authority.length, opt.length);
  return Buffer.concat([header, octets, ...answer, ...authority, ...opt]);
}

function record({ act, question }: Asked, type: number, data: Buffer, owner = HEADER_OCTETS): Buffer {
  return Buffer.concat([pointerTo(owner), u16(type, question.class), u32(act.ttlS), u16(data.length), data]);
}

/** Of the zone that the name is in: the name without its first label. */
function soa(asked: Asked): Buffer {
  const label = Buffer.from(asked.question.message, "hex")[HEADER_OCTETS] ?? 0;
  const zone = HEADER_OCTETS + (label === 0 ? 0 : 1 + label);
  const names = [string("ns"), pointerTo(zone), string("admin"), pointerTo(zone)];
  const numbers = [1, 7200, 3600, 1_209_600, asked.act.minimumS].map(u32);
  return record(asked, TYPE.SOA, Buffer.concat([...names, ...numbers]), zone);
}

function optRecord(isDnssecOk: boolean): Buffer {
  return Buffer.concat([Buffer.of(0), u16(TYPE.OPT, UDP_SIZE, 0, isDnssecOk ? 0x8000 : 0, 0)]);
}

/** A label of a name looks the same. */
function string(text: string): Buffer {
  return Buffer.concat([Buffer.of(text.length), Buffer.from(text, "latin1")]);
}

/** Character strings of at most 255 octets each, so many octets in all. */
function texts(length: number): Buffer {
  const data = Buffer.alloc(length, "x");
  for (let at = 0; at < length; at += 256) data[at] = Math.min(255, length - at - 1);
  return data;
}

function pointerTo(offset: number): Buffer {
  return u16(0xc000 | offset);
}

function hex(text: string): Buffer {
  return Buffer.from(text.replaceAll(" ", ""), "hex");
}

function u16(...values: readonly number[]): Buffer {
  const octets = Buffer.alloc(values.length * 2);
  for (const [index, value] of values.entries()) octets.writeUInt16BE(value, index * 2);
  return octets;
}

function u32(value: number): Buffer {
  const octets = Buffer.alloc(4);
  octets.writeUInt32BE(value);
  return octets;
}
