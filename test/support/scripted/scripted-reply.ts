/**
 * Replies of scripted upstream servers: for each word of a scenario the message and how it is sent. They are written
 * octet by octet, with compressed names as real servers send them, so that code that patches cached replies meets
 * pointers.
 */
import type { ServerAction, Word } from "./scenario.ts";
import { questionOctets, type UpstreamQuestion } from "../servers/upstream-question.ts";

export interface Delivery {
  readonly message: Buffer;
  /** "elsewhere": from another port of the same address; "cut": the connection closes in the middle of the message. */
  readonly how?: "elsewhere" | "cut";
}

export interface ScriptedQuery {
  readonly action: ServerAction;
  readonly question: UpstreamQuestion;
  /** Position of the server, from 1. */
  readonly server: number;
  /** How often this server was queried for this name, including this query. */
  readonly count: number;
}

interface Parts {
  /** Header flags and rcode. */
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
/** Size of one more address record, whose name is a pointer. */
const RECORD_OCTETS = 16;
const UDP_SIZE = 1232;
const LIE = hex("c6336442");
const SIGNATURE = hex("0001 0d 02 0000003c 7fffffff 60000000 4f66 04 74657374 00 abababababababababababababababab");

const REPLIES: Readonly<Record<Word, (query: ScriptedQuery) => readonly Delivery[]>> = {
  ok: (query) => one(ok(query)),
  count: (query) => one(written(query, countParts(query))),
  signed: (query) => one(written(query, signedParts(query))),
  nodata: (query) => one(written(query, { authority: [soa(query)] })),
  "nodata-without-soa": (query) => one(written(query, {})),
  nxdomain: (query) => one(written(query, { flags: RCODE.NXDOMAIN, authority: [soa(query)] })),
  "nxdomain-without-soa": (query) => one(written(query, { flags: RCODE.NXDOMAIN })),
  servfail: (query) => one(written(query, { flags: RCODE.SERVFAIL })),
  refused: (query) => one(written(query, { flags: RCODE.REFUSED })),
  formerr: (query) => one(written(query, { flags: RCODE.FORMERR })),
  notimp: (query) => one(written(query, { flags: RCODE.NOTIMP })),
  "formerr-to-edns": (query) => one(unlessEdns(query, RCODE.FORMERR)),
  "notimp-to-edns": (query) => one(unlessEdns(query, RCODE.NOTIMP)),
  "refused-to-ad": (query) => one(hasAd(query) ? written(query, { flags: RCODE.REFUSED }) : ok(query)),
  silent: () => [],
  "silent-to-edns": (query) => (query.question.opt === undefined ? one(ok(query)) : []),
  "silent-to-ad": (query) => (hasAd(query) ? [] : one(ok(query))),
  "silent-by-udp": (query) => (isUdp(query) ? [] : one(ok(query))),
  "silent-by-tcp": (query) => (isUdp(query) ? one(written(query, { flags: BIT.TC })) : []),
  closed: () => [],
  garbage: ({ question }) => one(Buffer.concat([u16(question.id), Buffer.alloc(30, 0xff)])),
  "wrong-id": (query) => one(isUdp(query) ? lie(query, 0xffff) : ok(query)),
  "wrong-source": (query) => (isUdp(query) ? [{ message: lie(query), how: "elsewhere" }] : one(ok(query))),
  "wrong-question": (query) => one(isUdp(query) ? aboutAnother(lie(query)) : ok(query)),
  truncated: (query) => one(isUdp(query) ? written(query, { flags: BIT.TC }) : ok(query)),
  midway: (query) => (isUdp(query) ? one(written(query, { flags: BIT.TC })) : [{ message: ok(query), how: "cut" }]),
  big: (query) => one(fitting(query)),
  oversized: (query) => one(written(query, bigParts(query))),
  spoof: (query) => [...(isUdp(query) ? lies(query) : []), ...one(ok(query))],
};

export function scriptedReply(query: ScriptedQuery): readonly Delivery[] {
  return REPLIES[query.action.word](query);
}

function one(message: Buffer): readonly Delivery[] {
  return [{ message }];
}

function isUdp({ question }: ScriptedQuery): boolean {
  return question.transport === "udp";
}

function hasAd({ question }: ScriptedQuery): boolean {
  return (question.flags & BIT.AD) !== 0;
}

function ok(query: ScriptedQuery): Buffer {
  const { server } = query;
  return written(query, numbered(query, hex("c00002"), server, `server ${server}`));
}

/** Answer that encodes a number, by the queried type. */
function numbered(query: ScriptedQuery, network: Buffer, number: number, text: string): Parts {
  const { type } = query.question;
  if (type === TYPE.A) return { answer: [record(query, type, Buffer.concat([network, Buffer.of(number & 0xff)]))] };
  if (type === TYPE.TXT) return { answer: [record(query, type, string(text))] };
  if (type >= TYPE.PRIVATE) return { answer: [record(query, type, hex("deadbeef"))] };
  if (type !== TYPE.AAAA) return { authority: [soa(query)] };
  const data = Buffer.concat([hex("20010db8"), Buffer.alloc(10), u16(number)]);
  return { answer: [record(query, type, data)] };
}

function countParts(query: ScriptedQuery): Parts {
  const { count } = query;
  return numbered(query, Buffer.concat([hex("c612"), Buffer.of(count >> 8)]), count, `answer ${count}`);
}

function signedParts(query: ScriptedQuery): Parts {
  const { question, server } = query;
  const isUnchecked = (question.flags & BIT.CD) !== 0;
  const isSecureWanted = question.opt?.dnssecOk === true || (question.flags & BIT.AD) !== 0;
  const parts = numbered(query, hex("c00002"), server + (isUnchecked ? 100 : 0), `unchecked ${isUnchecked}`);
  const signature = question.opt?.dnssecOk === true ? [record(query, TYPE.RRSIG, SIGNATURE)] : [];
  return {
    ...parts,
    flags: isSecureWanted && !isUnchecked ? BIT.AD : 0,
    answer: [...(parts.answer ?? []), ...signature],
  };
}

/** An old server that treats OPT as a format error and does not send OPT itself. */
function unlessEdns(query: ScriptedQuery, rcode: number): Buffer {
  return query.question.opt === undefined ? ok(query) : written(query, { flags: rcode, isPlain: true });
}

function lie(query: ScriptedQuery, idMask = 0): Buffer {
  const { question } = query;
  const answer = [record(query, TYPE.A, LIE)];
  return written({ ...query, question: { ...question, id: question.id ^ idMask } }, { answer });
}

function lies(query: ScriptedQuery): Delivery[] {
  return Array.from({ length: query.action.amount }, (_, index) => ({ message: lie(query, 1 + (index % 0xffff)) }));
}

/** Changes the first letter of the name. */
function aboutAnother(message: Buffer): Buffer {
  const at = HEADER_OCTETS + 1;
  message[at] = message[at] === 0x71 ? 0x72 : 0x71;
  return message;
}

function bigParts(query: ScriptedQuery): Parts {
  const { action, question } = query;
  if (question.type === TYPE.TXT) {
    return { answer: [record(query, TYPE.TXT, texts(action.amount * RECORD_OCTETS))] };
  }
  const data = Array.from({ length: action.amount }, (_, index) => Buffer.concat([hex("c612"), u16(index + 1)]));
  return { answer: data.map((address) => record(query, TYPE.A, address)) };
}

function fitting(query: ScriptedQuery): Buffer {
  const whole = written(query, bigParts(query));
  const limit = isUdp(query) ? Math.max(512, query.question.opt?.udpSize ?? 0) : 0xffff;
  return whole.length <= limit ? whole : written(query, { flags: BIT.TC });
}

/** The question is copied octet by octet, whatever its case, type and class. */
function written(
  { question }: ScriptedQuery,
  { flags = 0, answer = [], authority = [], isPlain = false }: Parts,
): Buffer {
  const octets = questionOctets(Buffer.from(question.message, "hex")) ?? Buffer.alloc(0);
  const opt = question.opt === undefined || isPlain ? [] : [optRecord(question.opt.dnssecOk)];
  const word = (question.flags & (OPCODE | BIT.RD | BIT.CD)) | BIT.QR | BIT.RA | flags;
  const header = u16(question.id, word, 1, answer.length, authority.length, opt.length);
  return Buffer.concat([header, octets, ...answer, ...authority, ...opt]);
}

function record({ action, question }: ScriptedQuery, type: number, data: Buffer, owner = HEADER_OCTETS): Buffer {
  return Buffer.concat([pointerTo(owner), u16(type, question.class), u32(action.ttlS), u16(data.length), data]);
}

/** SOA of the parent zone: the name without its first label. */
function soa(query: ScriptedQuery): Buffer {
  const label = Buffer.from(query.question.message, "hex")[HEADER_OCTETS] ?? 0;
  const zone = HEADER_OCTETS + (label === 0 ? 0 : 1 + label);
  const names = [string("ns"), pointerTo(zone), string("admin"), pointerTo(zone)];
  const numbers = [1, 7200, 3600, 1_209_600, query.action.minimumS].map(u32);
  return record(query, TYPE.SOA, Buffer.concat([...names, ...numbers]), zone);
}

function optRecord(isDnssecOk: boolean): Buffer {
  return Buffer.concat([Buffer.of(0), u16(TYPE.OPT, UDP_SIZE, 0, isDnssecOk ? 0x8000 : 0, 0)]);
}

/** A character string; a label has the same format. */
function string(text: string): Buffer {
  return Buffer.concat([Buffer.of(text.length), Buffer.from(text, "latin1")]);
}

/** Character strings of at most 255 octets each, `length` octets in all. */
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
