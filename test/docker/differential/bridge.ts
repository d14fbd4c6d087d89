// The differential of the default bridge: the same questions, about names that no container has, to a server of the
// container's resolv.conf, without dns11 and with it. Each reply must be the server's own, octet by octet, except for the
// known differences.

import type { Container } from "../../support/engine/container.ts";
import { type Outcome, ResolverClient } from "./client.ts";
import { readable } from "./compare.ts";
import { TYPE, opt } from "./octets.ts";
import { type Question, byTcp, byUdp, query } from "./question.ts";
import { blank } from "./run-both.ts";

const DNS = { udp: 53, tcp: 53 };
// A busy machine must not turn a reply into a timeout.
const WAIT_MS = 60_000;

const WORDS = ["ok", "nodata", "nx", "cname", "tc", "rr", "big", "servfail", "refused"];
const TYPES = { A: TYPE.A, TXT: TYPE.TXT, SRV: TYPE.SRV };
const QUERIES = {
  plain: {},
  "EDNS 4096 DO": { records: [opt({ size: 4096, isDnssecOk: true })] },
} as const;
const NAMES = [
  "nobody",
  "com",
  "www.example.com",
  "MiXeD7.oK.TeSt",
  "a.b.c.d.e.f3.ok.test",
  "under_score.ok.test",
  ".",
];
const REVERSE = ["7.2.0.192.in-addr.arpa", "9.8.168.192.in-addr.arpa", "1.0.0.0.0.0.d.f.ip6.arpa"];

// Each name is asked once, so that no reply is one of a cache.
function bridgeQuestions(): Question[] {
  const questions: Question[] = [];
  for (const [how, parts] of Object.entries(QUERIES)) {
    for (const [typeName, type] of Object.entries(TYPES)) {
      for (const word of WORDS) {
        for (const by of [byUdp, byTcp]) {
          const name = `q${questions.length}.${word}.test`;
          const label = `${word} ${typeName} ${by === byUdp ? "UDP" : "TCP"} ${how}`;
          questions.push(by("client", label, query({ name, type, ...parts }), WAIT_MS));
        }
      }
    }
  }
  for (const name of NAMES) questions.push(byUdp("client", `name ${name}`, query({ name }), WAIT_MS));
  for (const name of REVERSE) questions.push(byUdp("client", `PTR ${name}`, query({ name, type: TYPE.PTR }), WAIT_MS));
  return questions;
}

export async function askAll(container: Container, server: string): Promise<Outcome[]> {
  const client = new ResolverClient(container.netnsPath);
  const outcomes: Outcome[] = [];
  try {
    for (const [id, question] of bridgeQuestions().entries()) {
      outcomes.push(blank(await client.query(question, id, DNS, server), id));
    }
  } finally {
    client[Symbol.dispose]();
  }
  return outcomes;
}

interface KnownDifference {
  readonly reason: string;
  readonly labels: RegExp;
  // What turns the server's reply, as hex, into ours; without it, the replies may differ in any way.
  readonly change?: (reply: string) => string;
}

// CNAME and SOA of class IN with 60 s, as the scripted server sends them; the minimum of its SOA is 30 s.
const TTL_OF_60_S = /(000[56]0001)0000003c/g;

const KNOWN_DIFFERENCES: readonly KnownDifference[] = [
  {
    reason: "the records of a negative answer live no longer than the minimum of its SOA (RFC 2308)",
    labels: /^(nodata|nx) |^(ok|cname) SRV |^tc SRV TCP /,
    change: (reply) => reply.replaceAll(TTL_OF_60_S, (_, type: string) => `${type}0000001e`),
  },
  {
    reason: "SERVFAIL has an extended error for clients with EDNS, which lists what each server replied",
    labels: /^servfail \w+ \w+ EDNS /,
  },
  {
    reason: "REFUSED goes on to the next server of the file, and is SERVFAIL when all of them refuse",
    labels: /^refused \w+ \w+ plain$/,
    change: (reply) => reply.replace(/^(.{7})5/, (_, before: string) => `${before}2`),
  },
  { reason: "the same, with an extended error", labels: /^refused \w+ \w+ EDNS / },
  { reason: "a truncated reply is fetched over TCP, and cut for the client", labels: /^tc \w+ UDP |^big \w+ UDP / },
  {
    reason: "records outside the queried name's zone are removed: the scripted server has one SOA, of test.",
    labels: /^name (nobody|com|www\.example\.com|\.)$|^PTR /,
  },
  { reason: "data that no record of this type can have are an error of the server", labels: /^rr / },
  { reason: "a reply is compressed again, and what is not to be cached has no lifetime", labels: /^big \w+ TCP / },
];

// Every difference that is not known, and every known one that no longer occurs at all.
export function unknownDifferences(without: readonly Outcome[], withDns11: readonly Outcome[]): string[] {
  const occurring = new Set<KnownDifference>();
  const unknown = bridgeQuestions().flatMap(({ label }, at) => {
    const [before, after] = [without[at], withDns11[at]];
    if (before === undefined || after === undefined) return [`${label}: not asked twice`];
    if (areEqual(before, after)) return [];
    const known = KNOWN_DIFFERENCES.find(({ labels }) => labels.test(label));
    if (known === undefined || !isExplained(known, before, after)) return [reportOf(label, before, after)];
    occurring.add(known);
    return [];
  });
  const gone = KNOWN_DIFFERENCES.filter((known) => !occurring.has(known));
  return [...unknown, ...gone.map(({ reason }) => `no longer occurs: ${reason}`)];
}

function areEqual(before: Outcome, after: Outcome): boolean {
  return before.ended === after.ended && before.replies.join() === after.replies.join();
}

function isExplained({ change }: KnownDifference, before: Outcome, after: Outcome): boolean {
  if (after.ended !== "answered" || after.replies.length !== 1) return false;
  return change === undefined || areEqual({ ...before, replies: before.replies.map(change) }, after);
}

function reportOf(label: string, before: Outcome, after: Outcome): string {
  return [label, `  without: ${readable(before)}`, `  with:    ${readable(after)}`].join("\n");
}
