/**
 * Behaviour of the scripted upstream server, by the suffix of the name:
 *
 *   *.ok.test         A 192.0.2.N, AAAA 2001:db8::N, TXT, MX; N are the digits at the end of the first label, else 1;
 *                     no data for other types
 *   *.cname.test      CNAME to the same labels below ok.test, and that one's record
 *   10-0-0-1.at.test  that address; of fd00--1.at.test, the IPv6 address; of HTTPS, a service with it as a hint
 *   *.nodata.test     NOERROR without an answer, with SOA
 *   *.nx.test         NXDOMAIN with SOA; so does every name that is not in this table
 *   *.servfail.test   SERVFAIL
 *   *.refused.test    REFUSED
 *   *.no6.test        like ok.test, but NXDOMAIN for AAAA; of refuse6.test REFUSED, of fail6.test SERVFAIL;
 *                     after a question for mend.mend6.test no data
 *   *.silent.test     no reply
 *   MS.slow.test      like ok.test, after MS milliseconds
 *   *.held.test       like ok.test, when the test releases it
 *   *.tc.test         truncated and empty over UDP, like ok.test over TCP
 *   *.rr.test         one record of the queried type, with the data DE AD BE EF
 *   *.turns.test      A 192.0.2.N, one higher for each query, good for no time
 *   *.zero.test       like an own server of somebody who wants to be asked: A 198.51.100.1 to 40, good for no time, and no
 *                     record of other types; reverse names of these do not exist. Nothing of it may be cached
 *   *.big.test        992 octets, or truncated over UDP if the client accepts fewer
 *   *.oversize.test   992 octets over UDP, whatever the client accepts
 *   *.asker.test      like ok.test, but A is the address in the client subnet, if the query has one
 *   *.noedns.test     like ok.test; to a query with EDNS, FORMERR without EDNS
 *   app               NOERROR with SOA, as a top-level domain
 *   *.wrongid.test    like ok.test, under another id
 *   *.garbage.test    the right id, followed by octets that are not a message
 */
import { type Answer, encode } from "dns-packet";
import { questionOctets, type UpstreamQuestion } from "./upstream-question.ts";

/** A reply without end of its delay is sent when the test releases it. */
export type UpstreamReply = { readonly message: Buffer; readonly delayMs: number };

type Section = "answer" | "authority" | "additional";
type Part = {
  readonly section: Section;
  readonly type: number;
  readonly data: Buffer;
  readonly owner?: string;
  readonly ttl?: number;
};
type Behaviour = (question: UpstreamQuestion, labels: readonly string[]) => UpstreamReply | undefined;

const CLIENT_SUBNET = 8;
/** The option's data before an IPv4 address that is given in whole. */
const WHOLE_IPV4 = "00012000";
const FORMERR = 1;
const SERVFAIL = 2;
const NXDOMAIN = 3;
const REFUSED = 5;
const TC = 0x0200;
const QR_RA = 0x8080;
const OPCODE_RD_CD = 0x7910;
const TYPE_TXT = 16;
const TYPE_AAAA = 28;
const TYPE_HTTPS = 65;
const BIG = 992;
const TTL_S = 60;

const BEHAVIOURS: Readonly<Record<string, Behaviour>> = {
  ok: (question, labels) => now(reply(question, 0, okParts(question, labels))),
  cname: (question, labels) => now(reply(question, 0, cnameParts(question, labels))),
  at: (question, labels) => now(reply(question, 0, atParts(question, labels.at(-1) ?? ""))),
  nodata: (question) => now(reply(question, 0, [soa()])),
  nx: (question) => now(reply(question, NXDOMAIN, [soa()])),
  servfail: (question) => now(reply(question, SERVFAIL)),
  refused: (question) => now(reply(question, REFUSED)),
  no6: (question, labels) => now(withoutSix(question, labels, NXDOMAIN)),
  refuse6: (question, labels) => now(withoutSix(question, labels, REFUSED)),
  mend6: (question) => {
    isSixMended = true;
    return now(reply(question, 0, [soa()]));
  },
  fail6: (question, labels) => now(withoutSix(question, labels, SERVFAIL)),
  silent: () => undefined,
  slow: (question, labels) => ({
    message: reply(question, 0, okParts(question, labels)),
    delayMs: Number(labels.at(-1) ?? 0) || 1000,
  }),
  held: (question, labels) => ({ message: reply(question, 0, okParts(question, labels)), delayMs: Infinity }),
  tc: (question, labels) =>
    now(question.transport === "udp" ? reply(question, TC) : reply(question, 0, okParts(question, labels))),
  rr: (question) => now(reply(question, 0, [{ section: "answer", type: question.type, data: hex("deadbeef") }])),
  turns: (question) => now(reply(question, 0, turnsParts(question))),
  zero: (question) => now(reply(question, 0, zeroParts(question))),
  big: (question) => now(udpLimit(question) < BIG ? reply(question, TC) : bigReply(question)),
  oversize: (question) => now(bigReply(question)),
  asker: (question, labels) => {
    const subnet = question.opt?.options.find(({ code }) => code === CLIENT_SUBNET)?.data;
    const isWhole = question.type === 1 && subnet?.startsWith(WHOLE_IPV4) === true;
    const parts = isWhole
      ? [{ section: "answer", type: 1, data: hex(subnet.slice(WHOLE_IPV4.length)) } as const]
      : undefined;
    return now(reply(question, 0, parts ?? okParts(question, labels)));
  },
  noedns: (question, labels) =>
    now(
      question.opt === undefined
        ? reply(question, 0, okParts(question, labels))
        : reply({ ...question, opt: undefined }, FORMERR),
    ),
  wrongid: (question, labels) => now(reply({ ...question, id: question.id ^ 0xffff }, 0, okParts(question, labels))),
  garbage: (question) => now(Buffer.concat([uint16(question.id), Buffer.alloc(30, 0xff)])),
};

export function replyTo(question: UpstreamQuestion): UpstreamReply | undefined {
  const labels = question.name.toLowerCase().split(".");
  const top = labels.pop();
  if (question.name.endsWith(".100.51.198.in-addr.arpa")) return now(reply(question, NXDOMAIN));
  if (top === "app" && labels.length === 0) return now(reply(question, 0, [soa()]));
  const kind = labels.pop() ?? "";
  const behaviour = top === "test" && labels.length > 0 ? BEHAVIOURS[kind] : undefined;
  return behaviour === undefined ? now(reply(question, NXDOMAIN, [soa()])) : behaviour(question, labels);
}

let isSixMended = false;

function withoutSix(question: UpstreamQuestion, labels: readonly string[], rcode: number): Buffer {
  if (question.type === TYPE_AAAA && isSixMended) return reply(question, 0, [soa()]);
  return question.type === TYPE_AAAA ? reply(question, rcode) : reply(question, 0, okParts(question, labels));
}

function now(message: Buffer): UpstreamReply {
  return { message, delayMs: 0 };
}

function okParts(question: UpstreamQuestion, labels: readonly string[]): Part[] {
  const last = (Number(/\d+$/.exec(labels[0] ?? "")?.[0] ?? 1) || 1) & 0xff;
  const known: Readonly<Record<number, Answer>> = {
    1: { type: "A", name: ".", data: `192.0.2.${last}` },
    15: { type: "MX", name: ".", data: { preference: 10, exchange: "mail.ok.test" } },
    16: { type: "TXT", name: ".", data: `text of ${question.name.toLowerCase()}` },
    28: { type: "AAAA", name: ".", data: `2001:db8::${last.toString(16)}` },
  };
  const record = known[question.type];
  return record === undefined ? [soa()] : [{ section: "answer", type: question.type, data: dataOf(record) }];
}

let turns = 0;

function turnsParts({ type }: UpstreamQuestion): Part[] {
  if (type !== 1) return [soa()];
  turns = (turns % 200) + 1;
  return [{ section: "answer", type, data: hex(`c00002${byte(turns)}`), ttl: 0 }];
}

function zeroParts({ type }: UpstreamQuestion): Part[] {
  const numbers = type === 1 ? Array.from({ length: 40 }, (_, index) => index + 1) : [];
  return numbers.map((number) => ({ section: "answer", type, data: hex(`c63364${byte(number)}`), ttl: 0 }));
}

function cnameParts(question: UpstreamQuestion, labels: readonly string[]): Part[] {
  const target = [...labels, "ok", "test"].join(".");
  const alias: Part = { section: "answer", type: 5, data: dataOf({ type: "CNAME", name: ".", data: target }) };
  return [alias, ...okParts(question, labels).map((part) => Object.assign({ owner: target }, part))];
}

function atParts({ type }: UpstreamQuestion, label: string): Part[] {
  const isV4 = /^\d+-\d+-\d+-\d+$/.test(label);
  const address = isV4
    ? Buffer.from(label.split("-").map(Number))
    : dataOf({ type: "AAAA", name: ".", data: label.replaceAll("-", ":") });
  const hints = Buffer.concat([hex("0001 00"), uint16(isV4 ? 4 : 6), uint16(address.length), address]);
  if (type === TYPE_HTTPS) return [{ section: "answer", type, data: hints }];
  return type === (isV4 ? 1 : 28) ? [{ section: "answer", type, data: address }] : [soa()];
}

function soa(): Part {
  const data = { mname: "ns.test", rname: "admin.test", serial: 1, refresh: 60, retry: 60, expire: 60, minimum: 30 };
  return { section: "authority", type: 6, data: dataOf({ type: "SOA", name: ".", data }), owner: "test" };
}

/** Addresses if A was queried, then one text that fills the message to exactly BIG octets. */
function bigReply(question: UpstreamQuestion): Buffer {
  const addresses =
    question.type === 1 ? Array.from({ length: 40 }, (_, index) => hex(`c00002${byte(index + 1)}`)) : [];
  const parts: Part[] = addresses.map((data) => ({ section: "answer", type: 1, data }));
  const filler = (data: Buffer): Part => {
    return { section: question.type === TYPE_TXT ? "answer" : "additional", type: TYPE_TXT, data };
  };
  const missing = BIG - reply(question, 0, [...parts, filler(Buffer.alloc(0))]).length;
  return reply(question, 0, [...parts, filler(textOf(missing))]);
}

/** Character strings of at most 255 octets each, `length` octets in all. */
function textOf(length: number): Buffer {
  const data = Buffer.alloc(length, "x");
  for (let at = 0; at < length; at += 256) data[at] = Math.min(255, length - at - 1);
  return data;
}

function udpLimit(question: UpstreamQuestion): number {
  return question.transport === "tcp" ? 0xffff : Math.max(512, question.opt?.udpSize ?? 0);
}

/** The question is copied octet by octet, whatever its case, type and class. */
function reply(question: UpstreamQuestion, flagsAndRcode: number, parts: readonly Part[] = []): Buffer {
  const octets = questionOctets(Buffer.from(question.message, "hex")) ?? Buffer.alloc(0);
  const opt = question.opt === undefined ? [] : [optRecord(question.opt.dnssecOk)];
  const sections = (["answer", "authority", "additional"] as const).map((section) =>
    parts.filter((part) => part.section === section).map((part) => recordOctets(part, question.class)),
  );
  sections[2]?.push(...opt);
  const flags = (question.flags & OPCODE_RD_CD) | QR_RA | flagsAndRcode;
  const header = [question.id, flags, 1, ...sections.map((records) => records.length)].map(uint16);
  return Buffer.concat([...header, octets, ...sections.flat()]);
}

function recordOctets({ type, data, owner, ttl: seconds = TTL_S }: Part, recordClass: number): Buffer {
  const name = owner === undefined ? hex("c00c") : ownerOctets(owner);
  const ttl = Buffer.alloc(4);
  ttl.writeUInt32BE(seconds);
  return Buffer.concat([name, uint16(type), uint16(recordClass), ttl, uint16(data.length), data]);
}

/**
 * The library does not compress, so a record of the root starts with a single zero octet and its data is at offset 11.
 */
function dataOf(record: Answer): Buffer {
  return encode({ type: "response", answers: [record] }).subarray(12 + 11);
}

function ownerOctets(name: string): Buffer {
  return dataOf({ type: "CNAME", name: ".", data: name });
}

function optRecord(dnssecOk: boolean): Buffer {
  return hex(`00 0029 04d0 0000 ${dnssecOk ? "8000" : "0000"} 0000`);
}

function hex(text: string): Buffer {
  return Buffer.from(text.replaceAll(" ", ""), "hex");
}

function byte(value: number): string {
  return value.toString(16).padStart(2, "0");
}

function uint16(value: number): Buffer {
  const octets = Buffer.alloc(2);
  octets.writeUInt16BE(value);
  return octets;
}
