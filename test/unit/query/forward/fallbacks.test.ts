// Proves what is asked of servers that answer some queries only, with a clock that the test controls: those behind a network that
// drops EDNS, AD, UDP or TCP, and those that do not understand a query.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import { PROTOCOLS, RESULTS, Meter, upstreamSeries } from "../../../../src/query/record/meter.ts";
import { zoneOf } from "../../../../src/query/upstream/loop-guard.ts";
import { TYPE, aQuery, aRecord, aReplyTo, anOpt } from "../../../support/scripted/builders.ts";
import { Clock } from "../../support/clock.ts";
import { QueryPath, clientOf } from "../../support/query-path.ts";
import { readReply } from "../../support/reply.ts";
import { type TcpUpstream, UdpUpstream, type UdpScript, startBoth, write } from "../../support/upstreams.ts";

// What a query has beside its question.
type Form = "" | "EDNS" | "DO" | "AD" | "EDNS AD";
const [FORMERR, SERVFAIL, NOTIMP, REFUSED] = [1, 2, 4, 5];
const RD = 0x0100;
const AD = 0x0020;
const COOKIE = 10;
const CLIENT_SUBNET = 8;

const ADDRESS = aRecord({ owner: Buffer.of(0xc0, 12), type: TYPE.A, ttl: 60, data: Buffer.of(192, 0, 2, 1) });
const MANY = Array.from({ length: 100 }, () => ADDRESS);
const good: UdpScript = (query, reply) => reply(aReplyTo(query, 0, [ADDRESS]));
const silent: UdpScript = () => undefined;
const truncated: UdpScript = (query, reply) => {
  const message = aReplyTo(query);
  message[2] = (message[2] ?? 0) | 2;
  reply(message);
};

let names = 0;

function aNewQuery(form: Form): Buffer {
  const opt = form.includes("EDNS") || form === "DO" ? { opt: { isDnssecOk: form === "DO" } } : {};
  return aQuery({ name: `n${names++}.example.org`, flags: RD | (form.includes("AD") ? AD : 0), ...opt });
}

function formOf(query: Buffer): Form {
  const opt = readReply(query).additionals.find(({ type }) => type === TYPE.OPT);
  if (opt !== undefined && (opt.ttl & 0x8000) !== 0) return "DO";
  const parts = [opt === undefined ? "" : "EDNS", (query.readUInt16BE(2) & AD) === 0 ? "" : "AD"];
  return parts.filter(Boolean).join(" ") as Form;
}

// Each step: what the client asks, and what the server receives for it; or a time that passes.
type Step = readonly [asked: Form, ...sent: Form[]] | number;
type Network = (form: Form) => "answers" | "drops" | number;

const dropsEdns: Network = (form) => (form.includes("EDNS") || form === "DO" ? "drops" : "answers");
const dropsAd: Network = (form) => (form.includes("AD") ? "drops" : "answers");
const declines =
  (rcode: number): Network =>
  (form) =>
    form.includes("AD") ? rcode : "answers";

const CASES: readonly (readonly [title: string, network: Network, steps: readonly Step[]])[] = [
  [
    "everything is answered",
    () => "answers",
    [
      ["", ""],
      ["EDNS", "EDNS"],
      ["AD", "AD"],
      ["DO", "DO"],
      ["EDNS AD", "EDNS AD"],
    ],
  ],
  [
    "who asks for nothing never waits",
    dropsEdns,
    [
      ["", ""],
      ["AD", "AD"],
      ["", ""],
    ],
  ],
  [
    "EDNS is dropped, which is noticed once",
    dropsEdns,
    [
      ["EDNS", "EDNS", ""],
      ["EDNS", ""],
      ["EDNS AD", "AD"],
      ["", ""],
    ],
  ],
  [
    "AD is dropped, which is noticed once",
    dropsAd,
    [
      ["AD", "AD", ""],
      ["AD", ""],
      ["EDNS AD", "EDNS"],
      ["EDNS", "EDNS"],
    ],
  ],
  [
    "with both, both are left out",
    dropsAd,
    [
      ["EDNS AD", "EDNS AD", ""],
      ["EDNS", ""],
      ["AD", ""],
    ],
  ],
  ["it is forgotten after some time", dropsEdns, [["EDNS", "EDNS", ""], LIMITS.silentMs, ["EDNS", "EDNS", ""]]],
  // A lost packet costs no signatures.
  [
    "DNSSEC records are given up last",
    dropsEdns,
    [
      ["DO", "DO", "DO", "DO"],
      ["DO", "DO", ""],
      ["DO", "DO", ""],
    ],
  ],
  [
    "FORMERR at AD",
    declines(FORMERR),
    [
      ["AD", "AD", ""],
      ["AD", ""],
      ["EDNS AD", ""],
    ],
  ],
  [
    "NOTIMP at AD",
    declines(NOTIMP),
    [
      ["AD", "AD", ""],
      ["AD", ""],
    ],
  ],
  ["REFUSED at AD", declines(REFUSED), [["AD", "AD", ""], ["AD", ""], LIMITS.withoutEdnsMs, ["AD", "AD", ""]]],
  [
    "a server that refuses everything is asked again once",
    () => REFUSED,
    [
      ["AD", "AD", ""],
      ["AD", "AD"],
      ["", ""],
    ],
  ],
];

for (const [title, network, steps] of CASES) {
  test(`EDNS and AD: ${title}`, async () => {
    await using upstream = new UdpUpstream((query, reply) => {
      const does = network(formOf(query));
      if (typeof does === "number") reply(aReplyTo(query, does));
      else if (does === "answers") good(query, reply);
    });
    using clock = new Clock();
    const path = new QueryPath({ now: clock.now });
    const client = clientOf(upstream.server);
    for (const step of steps) {
      if (typeof step === "number") {
        clock.advance(step);
        continue;
      }
      const [asked, ...sent] = step;
      const before = upstream.queries.length;
      const reply = path.query(client, aNewQuery(asked));
      for (const [index, form] of sent.entries()) {
        await upstream.receives(before + index + 1);
        if (network(form) === "drops") clock.advance(LIMITS.retransmitMs * 2 ** index);
      }
      const isAnswered = network(sent.at(-1) ?? "") === "answers";
      assert.equal((await reply).answers.length, isAnswered ? 1 : 0, step.join(" > "));
      assert.deepEqual(upstream.queries.slice(before).map(formOf), sent);
    }
  });
}

test("a lost packet, or a slow name, does not show that EDNS is dropped", async () => {
  const held: (() => void)[] = [];
  let isSlow = false;
  await using upstream = new UdpUpstream((query, reply) => {
    if (isSlow) held.push(() => good(query, reply));
    else good(query, reply);
  });
  using clock = new Clock();
  const path = new QueryPath({ now: clock.now });
  const client = clientOf(upstream.server);
  await path.query(client, aNewQuery("EDNS"));
  isSlow = true;
  const reply = path.query(client, aNewQuery("EDNS"));
  await upstream.receives(2);
  clock.advance(LIMITS.retransmitMs);
  await upstream.receives(3);
  for (const answer of held) answer();
  assert.equal((await reply).answers.length, 1);
  isSlow = false;
  await path.query(client, aNewQuery("EDNS"));
  assert.deepEqual(upstream.queries.map(formOf), ["EDNS", "EDNS", "EDNS", "EDNS"]);
});

test("EDNS that is rejected late for one container's name is not dropped, and others are asked about with it", async () => {
  const held: (() => void)[] = [];
  let isRejecting = true;
  await using upstream = new UdpUpstream((query, reply) => {
    if (isRejecting && formOf(query) === "EDNS") held.push(() => reply(aReplyTo(query, FORMERR)));
    else good(query, reply);
  });
  using clock = new Clock();
  const path = new QueryPath({ now: clock.now });
  const reply = path.query(clientOf(upstream.server), aNewQuery("EDNS"));
  await upstream.receives(1);
  clock.advance(LIMITS.retransmitMs);
  assert.equal((await reply).answers.length, 1);
  for (const reject of held) reject();
  isRejecting = false;
  const other = clientOf(upstream.server);
  for (const form of ["", "EDNS"] as const) assert.equal((await path.query(other, aNewQuery(form))).answers.length, 1);
  assert.deepEqual(upstream.queries.map(formOf), ["EDNS", "", "", "EDNS"]);
});

test("a reply that lacks signatures, because EDNS is dropped, is not cached", async () => {
  await using upstream = new UdpUpstream((query, reply) => void (formOf(query) === "" && good(query, reply)));
  using clock = new Clock();
  const path = new QueryPath({ now: clock.now });
  const client = clientOf(upstream.server);
  const query = aQuery({ name: "example.org", opt: { isDnssecOk: true } });
  for (const [index, asked] of [aNewQuery("EDNS"), query, query].entries()) {
    const reply = path.query(client, asked);
    await upstream.receives(2 * index + 1);
    clock.advance(LIMITS.retransmitMs);
    assert.equal((await reply).answers.length, 1);
  }
  assert.deepEqual(upstream.queries.map(formOf), ["EDNS", "", "DO", "", "DO", ""]);
});

test("AD is that of the server, for whoever asks with AD, whoever asked before", async () => {
  await using upstream = new UdpUpstream((query, reply) => {
    const message = aReplyTo(query, 0, [ADDRESS]);
    if (formOf(query) !== "") message[3] = (message[3] ?? 0) | AD;
    reply(message);
  });
  const path = new QueryPath();
  const client = clientOf(upstream.server);
  for (const [flags, expected] of [
    [RD, "qr rd ra"],
    [RD | AD, "qr rd ra ad"],
    [RD, "qr rd ra"],
    [RD | AD, "qr rd ra ad"],
  ] as const)
    assert.equal((await path.query(client, aQuery({ name: "example.org", flags }))).flags, expected);
  assert.deepEqual(upstream.queries.map(formOf), ["", "AD"], "the answer to AD serves both");
  const inFlight = [RD, RD | AD].map((flags) => path.query(client, aQuery({ name: "other.example.org", flags })));
  assert.deepEqual(
    (await Promise.all(inFlight)).map(({ flags }) => flags),
    ["qr rd ra", "qr rd ra ad"],
  );
});

for (const [title, rcodes, expected] of [
  ["FORMERR goes on to the next server", [FORMERR, 0], 0],
  ["NOTIMP goes on to the next server", [NOTIMP, 0], 0],
  ["if none understands the query, the client learns that", [NOTIMP, FORMERR], NOTIMP],
  ["if the others fail, the client learns that, too", [SERVFAIL, FORMERR], FORMERR],
  ["the only server does not understand the query", [FORMERR], FORMERR],
] as const) {
  test(title, async () => {
    const upstreams = rcodes.map((rcode) => new UdpUpstream((query, reply) => reply(aReplyTo(query, rcode))));
    const reply = await new QueryPath().query(clientOf(...upstreams.map(({ server }) => server)), aNewQuery(""));
    assert.equal(reply.rcode, expected);
    for (const upstream of upstreams) {
      assert.equal(upstream.queries.length, 1);
      await upstream[Symbol.asyncDispose]();
    }
  });
}

test("cookies stay between neighbours, other options are passed on", async () => {
  const subnet = [CLIENT_SUBNET, Buffer.of(0, 1, 24, 0, 192, 0, 2)] as const;
  const cookie = [COOKIE, Buffer.alloc(16, 7)] as const;
  await using upstream = new UdpUpstream((query, reply) => {
    const message = Buffer.concat([aReplyTo(query, 0, [ADDRESS]), anOpt({ options: [cookie, subnet] })]);
    message.writeUInt16BE(1, 10);
    reply(message);
  });
  const options = [[COOKIE, Buffer.alloc(8, 7)] as const, subnet];
  const query = aQuery({ name: "example.org", opt: { options } });
  const reply = await new QueryPath().query(clientOf(upstream.server), query);
  const [received = Buffer.alloc(0)] = upstream.queries;
  const only = anOpt({ options: [subnet] });
  assert.deepEqual(received.subarray(-only.length), only);
  assert.deepEqual(reply.additionals[0]?.data, only.subarray(11));
});

// A server by both transports, and a client by either.
class Pair implements AsyncDisposable {
  readonly udp: UdpUpstream;
  readonly tcp: TcpUpstream;

  constructor([udp, tcp]: readonly [UdpUpstream, TcpUpstream]) {
    [this.udp, this.tcp] = [udp, tcp];
  }

  get counts(): readonly number[] {
    return [this.udp.queries.length, this.tcp.queries.length];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.udp[Symbol.asyncDispose]();
    await this.tcp[Symbol.asyncDispose]();
  }
}

async function aPair(udp: UdpScript, tcp: "answers" | "silent"): Promise<Pair> {
  return new Pair(
    await startBoth(udp, (query, socket) => {
      if (tcp === "answers") write(socket, aReplyTo(query, 0, MANY));
    }),
  );
}

test("UDP is filtered: who came over TCP is answered over TCP, from then on at once", async () => {
  await using pair = await aPair(silent, "answers");
  using clock = new Clock();
  const path = new QueryPath({ now: clock.now });
  const client = clientOf(pair.udp.server);
  const first = path.query(client, aNewQuery(""), "tcp");
  await pair.udp.receives(1);
  clock.advance(LIMITS.hedgeMsFirst);
  assert.equal((await first).answers.length, MANY.length);
  assert.equal((await path.query(client, aNewQuery(""), "tcp")).answers.length, MANY.length);
  assert.equal((await path.query(client, aNewQuery("EDNS"), "udp")).flags, "qr tc rd ra");
  assert.deepEqual(pair.counts, [1, 3]);
  clock.advance(LIMITS.silentMs);
  void path.query(client, aNewQuery(""), "tcp");
  await pair.udp.receives(2);
});

test("who came over TCP gets the reply over UDP where TCP leads nowhere", async () => {
  const held: (() => void)[] = [];
  await using upstream = new UdpUpstream((query, reply) => held.push(() => good(query, reply)));
  using clock = new Clock();
  const reply = new QueryPath({ now: clock.now }).query(clientOf(upstream.server), aNewQuery(""), "tcp");
  await upstream.receives(1);
  clock.advance(LIMITS.hedgeMsFirst);
  // The refusal arrives meanwhile.
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
  for (const answer of held) answer();
  assert.equal((await reply).answers.length, 1);
});

test("TCP of the first server is filtered: a large reply comes from the second, and UDP clients get TC at once", async () => {
  await using first = await aPair(truncated, "silent");
  await using second = await aPair(truncated, "answers");
  using clock = new Clock();
  const path = new QueryPath({ now: clock.now });
  const client = clientOf(first.udp.server, second.udp.server);
  const large = path.query(client, aNewQuery("EDNS"), "tcp");
  await first.tcp.receives(1);
  clock.advance(LIMITS.hedgeMsFirst);
  assert.equal((await large).answers.length, MANY.length);
  assert.equal(first.tcp.open, 1, "nobody has waited for its connection to end");
  assert.deepEqual(
    [first.counts, second.counts],
    [
      [1, 1],
      [0, 1],
    ],
  );
  assert.equal((await path.query(client, aNewQuery("EDNS"))).flags, "qr tc rd ra");
  assert.equal((await path.query(client, aNewQuery("EDNS"), "tcp")).answers.length, MANY.length);
  assert.deepEqual(
    [first.counts, second.counts],
    [
      [3, 1],
      [0, 2],
    ],
  );
  // One that came over UDP has the question in flight when one over TCP comes.
  const query = aNewQuery("EDNS");
  const both = [path.query(client, query), path.query(client, query, "tcp")] as const;
  assert.equal((await both[0]).flags, "qr tc rd ra");
  assert.equal((await both[1]).answers.length, MANY.length);
  assert.equal(first.tcp.queries.length, 1);
  clock.advance(LIMITS.tcpBlockedMs);
  void path.query(client, aNewQuery("EDNS"));
  await first.tcp.receives(2);
});

test("TCP of the only server is filtered: UDP clients wait for it once, and TCP clients try it", async () => {
  await using only = await aPair(truncated, "silent");
  using clock = new Clock();
  const path = new QueryPath({ now: clock.now });
  const client = clientOf(only.udp.server);
  const first = path.query(client, aNewQuery(""));
  await only.tcp.receives(1);
  clock.advance(LIMITS.tcpFallbackMs);
  assert.equal((await first).flags, "qr tc rd ra");
  assert.equal((await path.query(client, aNewQuery(""))).flags, "qr tc rd ra");
  assert.deepEqual(only.counts, [2, 1]);
  const last = path.query(client, aNewQuery(""), "tcp");
  await only.tcp.receives(2);
  clock.advance(4_400);
  assert.equal((await last).rcode, SERVFAIL);
});

test("a server whose TCP is filtered has not been silent to the queries that it truncates", async () => {
  await using only = await aPair(truncated, "silent");
  using clock = new Clock();
  const meter = new Meter();
  const path = new QueryPath({ now: clock.now, meter });
  const client = clientOf(only.udp.server);
  const first = path.query(client, aNewQuery(""));
  await only.tcp.receives(1);
  clock.advance(LIMITS.tcpFallbackMs);
  await first;
  const timeouts = (): number[] =>
    PROTOCOLS.map(
      (_, at) => meter.upstream.read([upstreamSeries(0, at, RESULTS.indexOf("timeout"))]).atMost.at(-1) ?? 0,
    );
  assert.deepEqual(timeouts(), [0, 1]);
  const query = aNewQuery("");
  assert.equal((await path.query(client, query)).flags, "qr tc rd ra");
  assert.deepEqual(timeouts(), [0, 1]);
  assert.equal(path.pool.find(client, only.udp.server)?.failureOf(zoneOf(query)), undefined);
});

test("who gets a stale answer and asks again gets the fresh one as soon as it is there", async () => {
  const held: (() => void)[] = [];
  let does: "answers" | "waits" | "fails" = "answers";
  let version = 1;
  await using upstream = new UdpUpstream((query, reply) => {
    const answer = (): void => {
      const data = Buffer.of(192, 0, 2, version);
      reply(aReplyTo(query, 0, [aRecord({ owner: Buffer.of(0xc0, 12), type: TYPE.A, ttl: 60, data })]));
    };
    if (does === "answers") answer();
    else if (does === "waits") held.push(answer);
    else reply(aReplyTo(query, SERVFAIL));
  });
  using clock = new Clock();
  const path = new QueryPath({ now: clock.now });
  const client = clientOf(upstream.server);
  const query = aQuery({ name: "example.org" });
  const ask = async (): Promise<number | undefined> => (await path.query(client, query)).answers[0]?.data[3];
  const untilFresh = async (): Promise<void> => {
    while ((await ask()) !== version) await new Promise((resolve) => setImmediate(resolve));
  };
  assert.equal(await ask(), 1);
  clock.advance(61_000);
  does = "waits";
  version = 2;
  const late = ask();
  await upstream.receives(2);
  clock.advance(LIMITS.staleAfterMs);
  assert.deepEqual([await late, await ask()], [1, 1]);
  for (const answer of held) answer();
  await untilFresh();
  clock.advance(61_000);
  does = "fails";
  version = 3;
  assert.equal(await ask(), 2);
  does = "answers";
  // Servers that have just failed are not asked for a moment.
  assert.equal(await ask(), 2);
  clock.advance(LIMITS.failureTimeoutMs);
  await untilFresh();
});
