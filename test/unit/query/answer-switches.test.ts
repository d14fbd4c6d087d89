// Proves that each switch changes what its description says, and nothing else, in either mode.

import assert from "node:assert/strict";
import { test } from "node:test";

import { DEFAULT_BEHAVIOUR, type Behaviour, STRICT_BEHAVIOUR } from "../../../src/base/model/behaviour.ts";
import { rcodeName } from "../../../src/base/dns/rcode.ts";
import { TYPE, aNetwork, aPointer, aQuery, aView, aClient, anOpt } from "../../support/scripted/builders.ts";
import { type AnswerResult, answerOnce } from "../support/reply.ts";

const NETWORK = {
  name: "one",
  members: [
    { names: ["web"], ipv4: "172.20.0.2", ipv6: "fd11::" },
    { names: ["mail.example.org"], ipv4: "172.20.0.4" },
    { names: ["hidden"], ipv4: "172.20.0.6" },
  ],
  links: ["web:Site", "nosuch:hidden"],
};
const OPEN_ENDED = `${"0.".repeat(28)}1.1.d.f.ip6.arpa`;

type Case = {
  // The query, and a description of the result with the switch off and on.
  readonly query: Buffer;
  readonly off: string;
  readonly on: string;
};

const SWITCHES: Readonly<Partial<Record<keyof Behaviour, Readonly<Record<string, Case>>>>> = {
  answersAllTypes: {
    "TXT of a dotless name": { query: aQuery({ name: "web", type: TYPE.TXT }), off: "deferred", on: "empty" },
    "HTTPS of name.network": { query: aQuery({ name: "web.one", type: TYPE.HTTPS }), off: "deferred", on: "empty" },
    "ANY of a dotless name": { query: aQuery({ name: "web", type: TYPE.ANY }), off: "deferred", on: "empty" },
    "PTR of a dotless name": { query: aQuery({ name: "web", type: TYPE.PTR }), off: "deferred", on: "empty" },
    "TXT of a dotted name": {
      query: aQuery({ name: "mail.example.org", type: TYPE.TXT }),
      off: "deferred",
      on: "deferred as local",
    },
    "TXT of a dotted name with its network": {
      query: aQuery({ name: "mail.example.org.one", type: TYPE.TXT }),
      off: "deferred",
      on: "empty",
    },
    "TXT of an unknown name": { query: aQuery({ name: "nope", type: TYPE.TXT }), off: "deferred", on: "deferred" },
    "MX of a dotted name": { query: aQuery({ name: "mail.example.org", type: TYPE.MX }), off: "empty", on: "empty" },
  },
  hasNegativeSoa: {
    "AAAA of a name without IPv6": {
      query: aQuery({ name: "mail.example.org", type: TYPE.AAAA }),
      off: "no authority",
      on: "SOA",
    },
    "A of a name with IPv4": { query: aQuery({ name: "web" }), off: "no authority", on: "no authority" },
  },
  speaksEdns: {
    "a query with an OPT": { query: aQuery({ name: "web", opt: {} }), off: "no OPT", on: "OPT" },
    "a query without one": { query: aQuery({ name: "web" }), off: "no OPT", on: "no OPT" },
    "an unknown version": { query: aQuery({ name: "web", opt: { version: 1 } }), off: "no OPT", on: "OPT, BADVERS" },
    "an unknown version for an unknown name": {
      query: aQuery({ name: "nope", opt: { version: 255 } }),
      off: "deferred",
      on: "OPT, BADVERS",
    },
    "two of them": { query: aQuery({ name: "web", additionals: [anOpt(), anOpt()] }), off: "no OPT", on: "FORMERR" },
  },
  checksQueries: {
    "NOTIFY for a container's name": { query: aQuery({ name: "web", flags: 0x2000 }), off: "NOERROR", on: "NOTIMP" },
    "class CH of a container's name": { query: aQuery({ name: "web", class: 3 }), off: "NOERROR", on: "REFUSED" },
    "class HS of an address": {
      query: aQuery({ name: "2.0.20.172.in-addr.arpa", type: TYPE.PTR, class: 4 }),
      off: "NOERROR",
      on: "REFUSED",
    },
    "class CH of another name": {
      query: aQuery({ name: "version.bind", type: TYPE.TXT, class: 3 }),
      off: "deferred",
      on: "deferred",
    },
    "any class": { query: aQuery({ name: "web", class: 255 }), off: "NOERROR", on: "NOERROR" },
    "a pointer in the question": { query: aQuery({ name: aPointer(4) }), off: "deferred", on: "FORMERR" },
    "a pointer behind a label": {
      query: aQuery({ name: Buffer.concat([Buffer.from("\x03web"), aPointer(6)]) }),
      off: "NOERROR",
      on: "FORMERR",
    },
  },
  ignoresCase: {
    "a link in other letters": { query: aQuery({ name: "site" }), off: "deferred", on: "addresses" },
    "a network in other letters": { query: aQuery({ name: "WEB.ONE" }), off: "deferred", on: "addresses" },
    "a reverse name in other letters": {
      query: aQuery({ name: "2.0.20.172.IN-ADDR.ARPA", type: TYPE.PTR }),
      off: "deferred",
      on: "pointer",
    },
    "a container in other letters": { query: aQuery({ name: "WEB" }), off: "addresses", on: "addresses" },
  },
  reversesAllIpv6: {
    "an address that ends with two colons": {
      query: aQuery({ name: OPEN_ENDED, type: TYPE.PTR }),
      off: "deferred",
      on: "pointer",
    },
    "an IPv4 address below ip6.arpa": {
      query: aQuery({ name: "2.0.20.172.ip6.arpa", type: TYPE.PTR }),
      off: "pointer",
      on: "deferred",
    },
  },
  skipsDanglingLinks: {
    "a name that a dangling link bears, too": { query: aQuery({ name: "hidden" }), off: "deferred", on: "addresses" },
  },
  compresses: {
    "an address": { query: aQuery({ name: "web" }), off: "owner in 5 octets", on: "owner in 2 octets" },
    "a pointer": {
      query: aQuery({ name: "2.0.20.172.in-addr.arpa", type: TYPE.PTR }),
      off: "owner in 25 octets",
      on: "owner in 2 octets",
    },
  },
};

// What each switch may change; a test looks at nothing else, so the other switches may have any value.
const RESULT_OF: Readonly<Partial<Record<keyof Behaviour, (answered: AnswerResult) => string>>> = {
  answersAllTypes: kindOf,
  hasNegativeSoa: (answered) => {
    const [authority] = replyOf(answered).authorities;
    return authority === undefined ? "no authority" : authority.type === TYPE.SOA ? "SOA" : "something else";
  },
  speaksEdns: (answered) => {
    if (answered.kind === "deferred") return "deferred";
    const { rcode, additionals } = replyOf(answered);
    if (rcode === 1) return "FORMERR";
    const [opt] = additionals;
    if (opt === undefined) return "no OPT";
    return opt.ttl >>> 24 === 1 ? "OPT, BADVERS" : "OPT";
  },
  checksQueries: (answered) => (answered.kind === "deferred" ? "deferred" : rcodeName(replyOf(answered).rcode)),
  ignoresCase: kindOf,
  reversesAllIpv6: kindOf,
  skipsDanglingLinks: kindOf,
  compresses: (answered) => {
    const [record] = replyOf(answered).answers;
    assert.ok(record !== undefined);
    return `owner in ${record.end - record.start - 10 - record.data.length} octets`;
  },
};

for (const [name, cases] of Object.entries(SWITCHES) as [keyof Behaviour, Record<string, Case>][]) {
  for (const [what, { query, off, on }] of Object.entries(cases)) {
    for (const [mode, behaviour] of Object.entries({ strict: STRICT_BEHAVIOUR, default: DEFAULT_BEHAVIOUR })) {
      test(`${mode} with ${name} off and on: ${what} gets "${off}" and "${on}"`, () => {
        const describe = RESULT_OF[name] ?? assert.fail();
        assert.equal(describe(resolved(query, { ...behaviour, [name]: false })), off);
        assert.equal(describe(resolved(query, { ...behaviour, [name]: true })), on);
      });
    }
  }
}

test("ttlSeconds is the TTL of all our records, and of the SOA in negative answers", () => {
  const behaviour = { ...DEFAULT_BEHAVIOUR, ttlSeconds: 77 };
  const address = replyOf(resolved(aQuery({ name: "web" }), behaviour));
  const pointer = replyOf(resolved(aQuery({ name: "2.0.20.172.in-addr.arpa", type: TYPE.PTR }), behaviour));
  const nothing = replyOf(resolved(aQuery({ name: "mail.example.org", type: TYPE.AAAA }), behaviour));
  const [soa] = nothing.authorities;
  assert.deepEqual([address.answers[0]?.ttl, pointer.answers[0]?.ttl, soa?.ttl], [77, 77, 77]);
  assert.equal(soa?.data.readUInt32BE(soa.data.length - 4), 77);
});

test("the two modes differ in every switch", () => {
  for (const [name, value] of Object.entries(STRICT_BEHAVIOUR))
    assert.notEqual(DEFAULT_BEHAVIOUR[name as keyof Behaviour], value, name);
});

function resolved(query: Buffer, behaviour: Behaviour): AnswerResult {
  return answerOnce(query, { behaviour, client: aClient(aView([aNetwork(NETWORK)])) });
}

function kindOf(answered: AnswerResult): string {
  if (answered.kind === "deferred") return answered.deferred.isLocalName ? "deferred as local" : "deferred";
  const [answer] = replyOf(answered).answers;
  if (answer === undefined) return "empty";
  return answer.type === TYPE.PTR ? "pointer" : "addresses";
}

function replyOf(answered: AnswerResult): Extract<AnswerResult, { kind: "reply" }>["reply"] {
  assert.equal(answered.kind, "reply");
  return answered.reply;
}
