// Unusual and malformed replies of the upstream servers: every record type, names compressed in every possible place, wrong
// counts, and broken data. They show whether a reply arrives unchanged.

import { type UpstreamQuestion, questionOctets } from "../../support/servers/upstream-question.ts";
import { RECORDS } from "./raw-records.ts";
import { FLAG, SIGNATURE, TYPE, hex, opt, option, pointerTo, record, strings, u16, wireName } from "./octets.ts";

type Parts = {
  readonly flags?: number;
  readonly answer?: readonly Buffer[];
  readonly authority?: readonly Buffer[];
  readonly additional?: readonly Buffer[];
  // The whole question section.
  readonly question?: Buffer;
  readonly counts?: readonly [number, number, number, number];
  readonly tail?: Buffer;
};

type Case = (question: UpstreamQuestion) => Parts | readonly Buffer[];

const NXDOMAIN = 3;
const QNAME = pointerTo(12);
const address = (last: number): Buffer => record({ owner: QNAME, type: TYPE.A, data: Buffer.of(192, 0, 2, last) });
const A = address(1);
const broken = (type: number, data: Buffer): Case => {
  return () => ({ answer: [A, record({ owner: QNAME, type, data })] });
};
const withOpt = (parts: Parameters<typeof opt>[0]): Case => {
  return () => ({ answer: [A], additional: [opt(parts)] });
};
const withFlags = (flags: number): Case => {
  return () => ({ flags, answer: [A] });
};
const ede = option(15, Buffer.concat([u16(22), Buffer.from("no reachable authority")]));

const STRUCTURE: Readonly<Record<string, Case>> = {
  plain: () => ({ answer: [A] }),
  aa: withFlags(FLAG.QR | FLAG.RA | FLAG.AA),
  tc: withFlags(FLAG.QR | FLAG.RA | FLAG.TC),
  ad: withFlags(FLAG.QR | FLAG.RA | FLAG.AD),
  cd: withFlags(FLAG.QR | FLAG.RA | FLAG.CD),
  z: withFlags(FLAG.QR | FLAG.RA | FLAG.Z),
  nora: withFlags(FLAG.QR),
  norecursion: withFlags(FLAG.QR | FLAG.RA),
  noqr: withFlags(FLAG.RA | FLAG.RD),
  opcode5: withFlags(FLAG.QR | FLAG.RA | (5 << 11)),
  headeronly: () => ({ question: Buffer.alloc(0), counts: [0, 0, 0, 0] }),
  headeronlynx: () => ({ flags: FLAG.QR | FLAG.RA | NXDOMAIN, question: Buffer.alloc(0), counts: [1, 0, 0, 0] }),
  headercounts: () => ({ question: Buffer.alloc(0), counts: [1, 2, 3, 4] }),
  noquestion: () => ({
    question: Buffer.alloc(0),
    counts: [0, 1, 0, 0],
    answer: [record({ owner: "x.raw.test", type: TYPE.A })],
  }),
  twoquestions: ({ message }) => {
    const octets = questionOctets(Buffer.from(message, "hex")) ?? Buffer.alloc(0);
    return { question: Buffer.concat([octets, octets]), counts: [2, 1, 0, 0], answer: [A] };
  },
  missingquestion: () => ({ counts: [2, 0, 0, 0] }),
  otherquestion: () => ({ question: Buffer.concat([wireName("other.test"), u16(1, 1)]), answer: [A] }),
  uppercase: ({ message }) => {
    const octets = questionOctets(Buffer.from(message, "hex")) ?? Buffer.alloc(0);
    return { question: Buffer.from(octets.toString("latin1").toUpperCase(), "latin1"), answer: [A] };
  },
  missinganswer: () => ({ answer: [A], counts: [1, 2, 0, 0] }),
  missingall: () => ({ counts: [1, 2, 1, 1] }),
  moreanswers: () => ({ answer: [A, address(2)], counts: [1, 1, 0, 0] }),
  junk: () => ({ answer: [A], tail: Buffer.from("junk behind") }),
  cutname: () => ({ answer: [A], counts: [1, 2, 0, 0], tail: hex("c0") }),
  cutfixed: () => ({ answer: [A], counts: [1, 2, 0, 0], tail: hex("c00c 0001 0001") }),
  cutdata: () => ({ answer: [A], counts: [1, 2, 0, 0], tail: hex("c00c 0001 0001 0000003c 0004 c000") }),
  cutquestion: () => ({ question: wireName("plain.raw.test"), counts: [1, 0, 0, 0] }),
  cutclass: () => ({ question: Buffer.concat([wireName("plain.raw.test"), u16(1)]), counts: [1, 0, 0, 0] }),
  halftype: () => ({ question: Buffer.concat([wireName("plain.raw.test"), hex("00")]), counts: [1, 0, 0, 0] }),
  threesections: () => ({
    answer: [A],
    authority: [record(RECORDS["soa"] ?? { type: 6 })],
    additional: [address(3), opt()],
  }),
  chain: () => {
    const chain = ["a.chain.test", "B.Chain.Test", "c.chain.test"];
    const answer = chain.map((target, index) => {
      return record({ owner: chain[index - 1] ?? QNAME, type: TYPE.CNAME, data: wireName(target) });
    });
    return { answer: [...answer, record({ owner: "c.chain.test", type: TYPE.A, data: hex("c0000205") })] };
  },
  otherclass: () => ({ answer: [record({ owner: QNAME, type: TYPE.A, class: 3, data: hex("c0000201") })] }),
  longttl: () => ({ answer: [record({ owner: QNAME, type: TYPE.A, ttl: 0xffffffff, data: hex("c0000201") })] }),
  selfpointer: () => ({ answer: [record({ owner: pointerTo(40), type: TYPE.A, data: hex("c0000201") })] }),
  farpointer: () => ({ answer: [record({ owner: pointerTo(0x3fff), type: TYPE.A, data: hex("c0000201") })] }),
  headerpointer: () => ({ answer: [record({ owner: pointerTo(4), type: TYPE.A, data: hex("c0000201") })] }),
  badlabel: () => ({ answer: [record({ owner: hex("41 61 00"), type: TYPE.A, data: hex("c0000201") })] }),
  longname: () => ({
    answer: [record({ owner: `${"n".repeat(63)}.`.repeat(4), type: TYPE.A, data: hex("c0000201") })],
  }),
  fullname: () => {
    const owner = `${"n".repeat(63)}.`.repeat(3) + "n".repeat(61);
    return { answer: [record({ owner, type: TYPE.A, data: hex("c0000201") })] };
  },
  big: () => ({ answer: Array.from({ length: 30 }, (_, index) => address(index)) }),
  bigtext: () => ({ answer: [record({ owner: QNAME, type: TYPE.TXT, data: strings(...longTexts(5)) })] }),
  hugetext: () => ({ answer: [record({ owner: QNAME, type: TYPE.TXT, data: strings(...longTexts(200)) })] }),
  signed: () => ({ answer: [A], additional: [SIGNATURE] }),
  nothing: () => [],
};

const EDNS: Readonly<Record<string, Case>> = {
  opt: withOpt({}),
  optdo: withOpt({ isDnssecOk: true, size: 4096 }),
  optz: withOpt({ z: 0x7abc }),
  optversion: withOpt({ version: 1 }),
  badvers: () => ({ additional: [opt({ rcode: 1 })] }),
  rcode18: () => ({ flags: FLAG.QR | FLAG.RA | 2, additional: [opt({ rcode: 1 })] }),
  rcode21: () => ({ flags: FLAG.QR | FLAG.RA | 5, additional: [opt({ rcode: 1 })] }),
  servfailopt: () => ({ flags: FLAG.QR | FLAG.RA | 2, additional: [opt({ options: [ede] })] }),
  nxopt: () => ({ flags: FLAG.QR | FLAG.RA | NXDOMAIN, additional: [opt({ options: [ede] })] }),
  optfirst: () => ({ additional: [opt({ options: [ede] }), address(4)] }),
  twoopts: () => ({ additional: [opt({ size: 600 }), opt({ size: 700, isDnssecOk: true })] }),
  optinanswer: () => ({ answer: [opt({ size: 600, rcode: 1 }), A] }),
  optname: withOpt({ owner: wireName("opt.test") }),
  options: withOpt({
    options: [
      option(3, Buffer.from("ns1.example")),
      option(5, Buffer.of(8, 10, 13)),
      option(6, Buffer.of(1, 2)),
      option(7, Buffer.of(1)),
      option(8, hex("0001 18 18 c00002")),
      option(9, hex("00000e10")),
      option(10, Buffer.alloc(16, 7)),
      option(11, u16(100)),
      option(12, Buffer.alloc(9)),
      option(14, u16(20326)),
      ede,
      option(65001, Buffer.from("local")),
    ],
  }),
};

const BROKEN: Readonly<Record<string, Case>> = {
  a3: broken(TYPE.A, hex("c00002")),
  a5: broken(TYPE.A, hex("c000020101")),
  a0: broken(TYPE.A, hex("")),
  aaaa15: broken(TYPE.AAAA, Buffer.alloc(15)),
  aaaa0: broken(TYPE.AAAA, hex("")),
  ns0: broken(TYPE.NS, hex("")),
  nscut: broken(TYPE.NS, hex("03 6e73")),
  nsmore: broken(TYPE.NS, hex("c00c 00")),
  mx1: broken(TYPE.MX, hex("00")),
  mx2: broken(TYPE.MX, hex("000a")),
  mx0: broken(TYPE.MX, hex("")),
  txt0: broken(TYPE.TXT, hex("")),
  txtlong: broken(TYPE.TXT, hex("0561")),
  txtempty: broken(TYPE.TXT, hex("00")),
  soashort: broken(TYPE.SOA, hex("c00c c00c 00000001 00000001")),
  soa0: broken(TYPE.SOA, hex("")),
  srv5: broken(TYPE.SRV, hex("0001 0001 00")),
  srvcompressed: broken(TYPE.SRV, hex("0001 0001 0035 c00c")),
  ds3: broken(TYPE.DS, hex("0001 05")),
  rrsigshort: broken(TYPE.RRSIG, hex("0001 05 02 0000003c")),
  nsecblock: broken(TYPE.NSEC, hex("c00c 00 21 00")),
  svcborder: broken(TYPE.SVCB, hex("0001 00 0003 0002 01bb 0001 0003 02 6832")),
  svcbcut: broken(TYPE.HTTPS, hex("0001 00 0001 0009 02")),
  caashort: broken(TYPE.CAA, hex("00 09 69")),
  svcbemptyprotocol: broken(TYPE.SVCB, hex("0001 00 0001 0001 00")),
  unknown0: broken(TYPE.PRIVATE, hex("")),
};

export const RAW_CASES: readonly string[] = [STRUCTURE, EDNS, BROKEN, RECORDS].flatMap((table) => Object.keys(table));

export function rawReply(question: UpstreamQuestion, name: string): readonly Buffer[] {
  const parts = RECORDS[name];
  const reply = (STRUCTURE[name] ?? EDNS[name] ?? BROKEN[name])?.(question) ?? {
    answer: parts === undefined ? [] : [record({ owner: QNAME, ...parts })],
  };
  return Array.isArray(reply) ? (reply as readonly Buffer[]) : [encode(question, reply as Parts)];
}

function encode(question: UpstreamQuestion, parts: Parts): Buffer {
  const { answer = [], authority = [], additional = [], tail = Buffer.alloc(0) } = parts;
  const questionSection = parts.question ?? questionOctets(Buffer.from(question.message, "hex")) ?? Buffer.alloc(0);
  const flags = parts.flags ?? FLAG.QR | FLAG.RA | (question.flags & (FLAG.RD | FLAG.CD));
  const counts = parts.counts ?? [1, answer.length, authority.length, additional.length];
  return Buffer.concat([
    u16(question.id, flags, ...counts),
    questionSection,
    ...answer,
    ...authority,
    ...additional,
    tail,
  ]);
}

function longTexts(count: number): string[] {
  return Array.from({ length: count }, (_, index) => String.fromCharCode(97 + (index % 26)).repeat(250));
}
