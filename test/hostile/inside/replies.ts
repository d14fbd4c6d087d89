// The replies of the attacker's nameservers, and the queries that trigger them.

import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";

import { withLength } from "../../../src/base/lib/stream-reader.ts";
import { aName, aPointer, aRecord, TYPE, u16 } from "../../support/scripted/builders.ts";
import { mutated } from "../../fuzz/mutate.ts";
import { Random } from "../../fuzz/random.ts";
import { queryEach, queryInFlight, query, sendUdp, udpSocket } from "./queries.ts";
import { nameIn, Serving } from "./serving.ts";

const QR = 0x8180;
const TC = 0x0200;
const FORMERR = 1;
const SERVFAIL = 2;
const ADDITIONALS_AT = 10;
const FORGED = Buffer.of(6, 6, 6, 6);
const GENUINE = Buffer.of(192, 0, 2, 66);
const OWNER = aPointer(12);
/** The index of the forgery with an alias. */
const ALIAS_FORGERY = 2;
const TIME_WAIT = " 06 ";

type Sections = {
  readonly flags?: number;
  readonly question?: Buffer;
  readonly answers?: readonly Buffer[];
  readonly authorities?: readonly Buffer[];
  readonly additionals?: readonly Buffer[];
};

function questionOf(request: Buffer): Buffer {
  return request.subarray(12, request.indexOf(0, 12) + 5);
}

function replyTo(request: Buffer, sections: Sections = {}): Buffer {
  const { flags = 0, question = questionOf(request), answers = [], authorities = [], additionals = [] } = sections;
  const counts = [1, answers.length, authorities.length, additionals.length];
  const header = [request.readUInt16BE(0), QR | flags, ...counts].map((word) => u16(word));
  return Buffer.concat([...header, question, ...answers, ...authorities, ...additionals]);
}

function address(owner: string | Buffer, data = GENUINE): Buffer {
  return aRecord({ owner, type: TYPE.A, ttl: 600, data });
}

function truncated(request: Buffer): Buffer {
  return replyTo(request, { flags: TC });
}

// Names with the maximum number of labels, 120 records owned by a pointer to them, and trailing garbage.
const DEEP_LABELS = 121;
const deepName = (index: number): string => `${letters(index)}.evil.test`;

function letters(index: number): string {
  return Array.from({ length: DEEP_LABELS }, (_, place) => ((index >> place) & 1 ? "b" : "a")).join(".");
}

function fatal(request: Buffer): Buffer {
  const answers = Array.from({ length: 120 }, () => aRecord({ owner: OWNER, type: TYPE.TXT }));
  return Buffer.concat([replyTo(request, { answers }), Buffer.alloc(500, 0xff)]);
}

// The packet that once crashed the process, over UDP and, for every other name, over TCP.
export async function fatalReplies(count: number): Promise<object> {
  const server = await Serving.at({
    udp: (request) => [nameIn(request).startsWith("b") ? truncated(request) : fatal(request)],
    tcp: (request, connection) => void connection.write(withLength(fatal(request))),
  });
  const report = await queryInFlight(deepName, { count, inFlight: 200 });
  return { ...report, served: server.queries, accepted: server.accepted };
}

// Mutations of valid replies. Most keep the question intact, so that the rest is parsed.
export async function malformedReplies(count: number): Promise<object> {
  let made = 0;
  const malformed = (request: Buffer): Buffer => {
    const random = new Random(11, made++);
    const alias = aRecord({ owner: OWNER, type: TYPE.CNAME, ttl: 60, data: aName("a.evil.test") });
    const sound = replyTo(request, {
      answers: [alias, address("a.evil.test"), address(OWNER), aRecord({ owner: OWNER, type: TYPE.MX, data: FORGED })],
      authorities: [aRecord({ owner: "test", type: TYPE.SOA, data: Buffer.alloc(30) })],
      additionals: [address("ns.evil.test", FORGED)],
    });
    const message = mutated(sound, random, [request, sound]);
    if (message.length < 2 || random.once(8)) return message;
    message.writeUInt16BE(request.readUInt16BE(0), 0);
    if (random.once(4)) return message;
    const question = questionOf(request);
    return Buffer.concat([
      request.subarray(0, 2),
      u16(QR),
      u16(1),
      message.subarray(6, 12),
      question,
      message.subarray(12 + question.length),
    ]);
  };
  const server = await Serving.at({
    udp: (request) => [made % 5 === 0 ? truncated(request) : malformed(request)],
    tcp: (request, connection) => void connection.write(withLength(malformed(request))),
  });
  const report = await queryInFlight((index) => `f${index}.evil.test`, { count, inFlight: 500 });
  return { ...report, served: server.queries };
}

// Every UDP reply forces a retry over TCP: it is truncated or damaged. Half of the connections are closed after one reply.
export async function truncatedReplies(count: number): Promise<object> {
  const startMs = performance.now();
  const server = await Serving.at({
    udp: (request) => [
      nameIn(request).startsWith("t")
        ? truncated(request)
        : Buffer.concat([request.subarray(0, 2), Buffer.alloc(30, 0xff)]),
    ],
    tcp: (request, connection) => {
      const reply = withLength(replyTo(request, { answers: [address(OWNER)] }));
      if (server.accepted % 2 === 0) connection.write(reply);
      else connection.end(reply);
    },
  });
  const names = (index: number): string => `${index % 2 === 0 ? "t" : "d"}${index}.evil.test`;
  const report = await queryInFlight(names, { count, inFlight: 200 });
  const seconds = (performance.now() - startMs) / 1000;
  const timeWait = readFileSync("/proc/net/tcp", "latin1")
    .split("\n")
    .filter((line) => line.includes(TIME_WAIT)).length;
  return { ...report, served: server.queries, accepted: server.accepted, timeWait, seconds };
}

const FORGERY_WAITS = 150;

// Records for other names: alone, beside the right answer, at the end of an alias, and in every section.
export async function forgedRecords(count: number): Promise<object> {
  const target = "target.ok.test";
  const alias = aRecord({ owner: OWNER, type: TYPE.CNAME, ttl: 600, data: aName(target) });
  const delegation = aRecord({ owner: "ok.test", type: TYPE.NS, ttl: 600, data: aName("ns.evil.test") });
  const forgeries: readonly ((request: Buffer) => Sections)[] = [
    () => ({ answers: [address(target, FORGED)] }),
    () => ({ answers: [address(OWNER), address(target, FORGED)] }),
    () => ({ answers: [alias, address(target, FORGED)] }),
    () => ({
      answers: [address(OWNER)],
      authorities: [delegation],
      additionals: [address("ns.evil.test", FORGED), address(target, FORGED)],
    }),
    () => ({ answers: [address(OWNER, FORGED)], question: Buffer.concat([aName(target), u16(TYPE.A), u16(1)]) }),
    () => ({ authorities: [delegation], additionals: [address(target, FORGED)] }),
  ];
  const forge = (request: Buffer): Buffer => {
    return replyTo(request, forgeries[indexIn(request) % forgeries.length]?.(request));
  };
  const server = await Serving.at({
    udp: (request) => [forge(request)],
    tcp: (request, connection) => void connection.write(withLength(forge(request))),
  });
  // At the end of its own alias a forged record may reach the attacker itself; no other forgery may get through.
  let [believed, others] = [0, 0];
  const socket = await udpSocket();
  socket.on("message", (reply: Buffer) => {
    if (!reply.includes(FORGED)) return;
    if (indexIn(reply) % forgeries.length === ALIAS_FORGERY) believed++;
    else others++;
  });
  for (let index = 0; index < count; index++) {
    await sendUdp(socket, query(`p${index}.evil.test`, index));
    if (index % 20 === 0) await pause(10);
  }
  // A busy machine takes its time; a reply that is believed arrives after its query was served.
  for (let waits = 0; waits < FORGERY_WAITS && server.queries < count; waits++) await pause(100);
  await pause(1_000);
  return { served: server.queries, believed, others };
}

function indexIn(message: Buffer): number {
  return Number(/\d+/.exec(nameIn(message))?.[0] ?? 0);
}

// Zones whose servers do not reply, or reply SERVFAIL, queried by a container that shares the host's server with others.
export async function deadZones(count: number): Promise<object> {
  const server = await Serving.at({
    udp: (request) => (nameIn(request).startsWith("s") ? [] : [replyTo(request, { flags: SERVFAIL })]),
  });
  const names = (index: number): string => `${index % 2 === 0 ? "s" : "f"}${index}.evil.test`;
  return { ...(await queryEach(names, { count, perSecond: 200 })), served: server.queries };
}

// A zone that rejects EDNS and answers retries without it.
export async function deniedEdns(count: number): Promise<object> {
  let plain = 0;
  const server = await Serving.at({
    udp: (request) => {
      if (request.readUInt16BE(ADDITIONALS_AT) > 0) return [replyTo(request, { flags: FORMERR })];
      plain++;
      return [replyTo(request, { answers: [address(OWNER)] })];
    },
  });
  const report = await queryInFlight((index) => `o${index}.evil.test`, { count, inFlight: 10 });
  return { ...report, served: server.queries, plain };
}

// Makes dns11 send a loop probe, reads the probe's name at its own server, and queries it as a container in a loop would.
export async function forgedLoop(count: number): Promise<object> {
  const probes: string[] = [];
  let believed = 0;
  const socket = await udpSocket();
  socket.on("message", (reply: Buffer) => {
    if (reply.includes("forwarding loop back to dns11")) believed++;
  });
  const server = await Serving.at({
    udp: (request) => {
      const name = nameIn(request);
      if (name.includes("dns11-loop")) probes.push(name);
      return [];
    },
  });
  for (let round = 0; round < count && believed === 0; round++) {
    for (let times = 0; times < 3; times++) await sendUdp(socket, query(`l${round}.loop.test`, round * 8 + times));
    await pause(200);
    for (const [index, name] of probes.entries()) {
      await sendUdp(socket, query(name, 0x4000 + index, TYPE.TXT));
      // Below the name that was probed, which now counts as a loop.
      await sendUdp(socket, query(name.replace(/^.*?dns11-loop/, `x${round}`), 0x8000 + index));
    }
  }
  return { served: server.queries, probes: probes.length, believed };
}
