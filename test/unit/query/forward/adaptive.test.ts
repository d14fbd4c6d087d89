// Proves how servers are queried in default mode: each query within its time budget, whatever the servers do.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import { guard } from "../../../../src/base/lib/guard.ts";
import type { Server } from "../../../../src/base/model/view.ts";
import {
  TYPE,
  aClient,
  aName,
  aPointer,
  aQuery,
  aRecord,
  aReplyTo,
  aRoute,
  aView,
  anOpt,
  upstreams,
} from "../../../support/scripted/builders.ts";
import { Clock } from "../../support/clock.ts";
import { QueryPath, clientOf, realNow } from "../../support/query-path.ts";
import { SimulatedServers } from "../../support/simulated-servers.ts";
import { dialHere } from "../../support/loopback.ts";
import { type Reply, readName, readReply } from "../../support/reply.ts";
import { UdpUpstream, type UdpScript, closedUdpServer, write, startBoth } from "../../support/upstreams.ts";

const QUERY = aQuery({ id: 0xbeef, name: "Example.org" });
const answer = (data = Buffer.of(192, 0, 2, 1)): Buffer =>
  aRecord({ owner: Buffer.of(0xc0, 12), type: TYPE.A, ttl: 60, data });
const good: UdpScript = (query, reply) => reply(aReplyTo(query, 0, [answer()]));
const coded =
  (rcode: number): UdpScript =>
  (query, reply) =>
    reply(aReplyTo(query, rcode));
const silent: UdpScript = () => undefined;

/** The text of the extended error, the only option of the reply's OPT. */
function errorTextOf({ additionals }: Reply): string {
  return additionals[0]?.data.subarray(6).toString() ?? "";
}

test("a reply has the client's id and letter case, and the upstream query nothing that the client has not asked for", async () => {
  await using upstream = new UdpUpstream(good);
  const reply = await new QueryPath().query(clientOf(upstream.server), QUERY);
  assert.deepEqual([reply.id, reply.flags, reply.rcode, reply.question?.name], [0xbeef, "qr rd ra", 0, "Example.org"]);
  assert.deepEqual(reply.answers[0]?.data, Buffer.of(192, 0, 2, 1));
  assert.equal(reply.additionals.length, 0);
  const [before = Buffer.alloc(0)] = upstream.queries;
  assert.ok(before.includes(Buffer.from("Example")));
  assert.equal(before.readUInt16BE(2), 0x0100);
  assert.deepEqual(before.subarray(10, 12), Buffer.of(0, 0));
  assert.equal(before.length, QUERY.length);
});

test("flags of replies and failures are ours: RA always, RD and CD as in the query, never AA", async () => {
  const authoritative: UdpScript = (query, reply) => {
    const message = aReplyTo(query, 0, [answer()]);
    message.set([0x85, 0], 2);
    reply(message);
  };
  for (const [script, rcode] of [
    [authoritative, 0],
    [coded(2), 2],
    [coded(5), 2],
  ] as const) {
    await using upstream = new UdpUpstream(script);
    for (const [flags, expected] of [
      [0x100, "qr rd ra"],
      [0x110, "qr rd ra cd"],
    ] as const) {
      const reply = await new QueryPath().query(clientOf(upstream.server), aQuery({ name: "example.org", flags }));
      assert.deepEqual([reply.flags, reply.rcode], [expected, rcode]);
    }
  }
});

for (const [what, rcode] of Object.entries({ SERVFAIL: 2, REFUSED: 5 })) {
  test(`${what} goes on to the next server at once`, async () => {
    await using first = new UdpUpstream(coded(rcode));
    await using second = new UdpUpstream(good);
    const reply = await new QueryPath().query(clientOf(first.server, second.server), QUERY);
    assert.deepEqual([reply.rcode, reply.answers.length], [0, 1]);
  });
}

test("a server that replies with too many aliases has failed for everybody, and is not asked again at once", async () => {
  const aliases = Array.from({ length: LIMITS.scrubAliases + 2 }, (_, index) =>
    aRecord({
      owner: index === 0 ? aPointer(12) : `n${index}.test`,
      type: TYPE.CNAME,
      data: aName(`n${index + 1}.test`),
    }),
  );
  await using upstream = new UdpUpstream((query, reply) => reply(aReplyTo(query, 0, aliases)));
  const queryPath = new QueryPath();
  const client = clientOf(upstream.server);
  for (let time = 0; time < 3; time++) assert.equal((await queryPath.query(client, QUERY)).rcode, 2);
  assert.equal(upstream.queries.length, 1);
});

test("NXDOMAIN is final", async () => {
  await using first = new UdpUpstream(coded(3));
  await using second = new UdpUpstream(good);
  const reply = await new QueryPath().query(clientOf(first.server, second.server), QUERY);
  assert.equal(reply.rcode, 3);
  assert.equal(second.queries.length, 0);
});

test("a silent server is joined by the next, and a closed port costs nothing", async () => {
  await using first = new UdpUpstream(silent);
  await using third = new UdpUpstream(good);
  const servers = [first.server, await closedUdpServer(), third.server];
  const reply = await new QueryPath({ now: realNow }).query(clientOf(...servers), QUERY);
  assert.equal(reply.answers.length, 1);
});

test("a server that stays silent becomes the last choice, and the first again when it answers", async () => {
  let isSilent = true;
  using clock = new Clock();
  const second = { says: "192.0.2.2", afterMs: 1 };
  const servers = new SimulatedServers(clock, [() => (isSilent ? undefined : second), () => second]);
  for (let i = 0; i < 4; i++) await servers.until(servers.ask(`n${i}.example.org`));
  assert.deepEqual(servers.path.health, ["down: does not answer"]);
  await servers.until(servers.ask("m.example.org"));
  isSilent = false;
  await servers.pass(1_000);
  await servers.until(servers.ask("trial.example.org"));
  await servers.pass(10);
  assert.ok(servers.asked[0]?.includes("trial.example.org"));
  assert.ok(!servers.asked[0]?.includes("m.example.org"));
  assert.equal(servers.path.health.at(-1), "up: answers again");
});

test("when all fail, the extended error has the failure of each", async () => {
  await using first = new UdpUpstream(coded(2));
  await using second = new UdpUpstream(coded(5));
  const queryPath = new QueryPath();
  const query = aQuery({ name: "example.org", opt: {} });
  const reply = await queryPath.query(clientOf(first.server, second.server), query);
  assert.deepEqual([reply.rcode, reply.flags], [2, "qr rd ra"]);
  const text = errorTextOf(reply);
  assert.match(text, /^127\.0\.0\.1:\d+: SERVFAIL; 127\.0\.0\.1:\d+: REFUSED$/);
  assert.deepEqual(queryPath.failures, [text]);
});

test("without any server, the extended error says so", async () => {
  const reply = await new QueryPath().query(clientOf(), aQuery({ name: "example.org", opt: {} }));
  assert.equal(reply.rcode, 2);
  assert.deepEqual(reply.additionals[0]?.data.readUInt16BE(4), 18);
  assert.equal(errorTextOf(reply), "no upstream server is available to this container");
});

test("where containers were named as servers and cannot be queried, the extended error says which and why", async () => {
  const missing = [
    { server: "container:pihole", reason: 'no running container is named "pihole"; start it, or name another server' },
    { server: "container:other", reason: 'container "other" has no address of its own; connect it to a network' },
  ];
  const route = { ...aRoute("corp.test", []), missing };
  await using upstream = new UdpUpstream(good);
  const client = aClient(aView([], upstreams({ servers: [upstream.server], routes: [route] })), dialHere);
  const queryPath = new QueryPath();
  const reply = await queryPath.query(client, aQuery({ name: "a.corp.test", opt: {} }));
  assert.deepEqual([reply.rcode, reply.additionals[0]?.data.readUInt16BE(4)], [2, 18]);
  const text = missing.map(({ server, reason }) => `${server} is not queried: ${reason}`).join("; ");
  assert.equal(errorTextOf(reply), text.slice(0, 200));
  const elsewhere = await queryPath.query(client, aQuery({ name: "example.org", opt: {} }));
  assert.deepEqual([elsewhere.rcode, elsewhere.answers.length], [0, 1]);
});

test("a server's own extended error is passed on", async () => {
  const bogus = Buffer.concat([Buffer.of(0, 15, 0, 2, 0, 6)]);
  await using upstream = new UdpUpstream((query, reply) => {
    const message = Buffer.concat([aReplyTo(query, 2), aRecord({ type: TYPE.OPT, class: 1232, data: bogus })]);
    message.writeUInt16BE(1, 10);
    reply(message);
  });
  const reply = await new QueryPath().query(clientOf(upstream.server), aQuery({ name: "example.org", opt: {} }));
  assert.deepEqual(reply.additionals[0]?.data, bogus);
});

test("a truncated reply is fetched over TCP from the same server", async () => {
  const whole = Array.from({ length: 100 }, () => answer());
  const [udp, tcp] = await startBoth(
    (query, reply) => {
      const message = aReplyTo(query);
      message[2] = (message[2] ?? 0) | 2;
      reply(message);
    },
    (query, socket) => write(socket, aReplyTo(query, 0, whole)),
  );
  await using upstream = udp;
  await using stream = tcp;
  const queryPath = new QueryPath();
  const client = clientOf(upstream.server);
  const large = await queryPath.query(client, aQuery({ name: "example.org", opt: { udpSize: 4096 } }));
  assert.deepEqual([large.answers.length, large.flags], [100, "qr rd ra"]);
  const small = await queryPath.raw(client, aQuery({ name: "example.org" }));
  assert.ok(small.length <= 512);
  assert.equal(readReply(small).flags, "qr tc rd ra");
  assert.equal((await queryPath.query(client, aQuery({ name: "example.org" }), "tcp")).answers.length, 100);
  assert.deepEqual([upstream.queries.length, stream.queries.length], [1, 1]);
});

test("a reply for one client alone that is too large for it is truncated, with an OPT if the query has one", async () => {
  await using upstream = new UdpUpstream((query, reply) => {
    reply(
      aReplyTo(
        query,
        0,
        Array.from({ length: 100 }, () => answer()),
      ),
    );
  });
  const queryPath = new QueryPath();
  const client = clientOf(upstream.server);
  for (const opt of [undefined, { isDnssecOk: true }, {}]) {
    // Without RD, the query is forwarded as it is.
    const query = aQuery({ name: "example.org", flags: 0, ...(opt && { opt }) });
    const reply = await queryPath.query(client, query);
    assert.deepEqual([reply.flags, reply.answers.length], ["qr tc ra", 0]);
    const opts = reply.additionals.map(({ type, ttl }) => [type, ttl]);
    assert.deepEqual(opts, opt === undefined ? [] : [[TYPE.OPT, opt.isDnssecOk === true ? 0x8000 : 0]]);
  }
});

test("a server that rejects EDNS is queried without, and that is remembered", async () => {
  await using upstream = new UdpUpstream((query, reply) =>
    query.readUInt16BE(10) > 0 ? reply(aReplyTo(query, 1)) : good(query, reply),
  );
  const queryPath = new QueryPath();
  const client = clientOf(upstream.server);
  for (const name of ["example.org", "other.org"])
    assert.equal((await queryPath.query(client, aQuery({ name, opt: {} }))).answers.length, 1);
  assert.equal(upstream.queries.length, 3);
  assert.deepEqual(upstream.queries[0]?.subarray(-11), anOpt({ udpSize: 1232 }));
});

test("spoofed replies are detected, and the query is sent over TCP", async () => {
  const [udp, tcp] = await startBoth(
    (query, reply) => {
      for (let guess = 1; guess <= 3; guess++) {
        const forged = aReplyTo(query, 0, [answer(Buffer.of(6, 6, 6, 6))]);
        forged.writeUInt16BE((query.readUInt16BE(0) + guess) & 0xffff, 0);
        reply(forged);
      }
    },
    (query, socket) => write(socket, aReplyTo(query, 0, [answer()])),
  );
  await using upstream = udp;
  await using stream = tcp;
  const reply = await new QueryPath().query(clientOf(upstream.server), QUERY);
  assert.deepEqual(reply.answers[0]?.data, Buffer.of(192, 0, 2, 1));
  assert.equal(stream.queries.length, 1);
});

test("a reply to another question is ignored", async () => {
  await using upstream = new UdpUpstream((query, reply) => {
    const other = aReplyTo(aQuery({ id: query.readUInt16BE(0), name: "example.net" }), 3);
    reply(other);
    good(query, reply);
  });
  assert.equal((await new QueryPath().query(clientOf(upstream.server), QUERY)).answers.length, 1);
});

test("identical questions in flight are sent once, and each client gets its own form of the reply", async () => {
  const replies: (() => void)[] = [];
  await using upstream = new UdpUpstream((query, reply) => replies.push(() => good(query, reply)));
  const queryPath = new QueryPath({ now: realNow, behaviour: { guardsLoops: false } });
  const [one, other] = [clientOf(upstream.server), clientOf(upstream.server)];
  const host: Server = { ...upstream.server, from: "host" };
  const [a, b] = [clientOf(host), clientOf(host)];
  const all = [
    queryPath.query(a, aQuery({ id: 1, name: "example.org" })),
    queryPath.query(b, aQuery({ id: 2, name: "EXAMPLE.org", opt: {} })),
    queryPath.query(b, aQuery({ id: 3, name: "example.ORG" }), "tcp"),
  ];
  await upstream.receives(1);
  for (const say1 of replies) say1();
  const got = await Promise.all(all);
  assert.deepEqual(
    got.map(({ id, question, additionals }) => [id, question?.name, additionals.length]),
    [
      [1, "example.org", 0],
      [2, "EXAMPLE.org", 1],
      [3, "example.ORG", 0],
    ],
  );
  assert.equal(upstream.queries.length, 1);
  void Promise.all([queryPath.query(one, QUERY), queryPath.query(other, QUERY)]);
  await upstream.receives(3);
});

test("a long reply that many wait for is given to some in each turn, and is the same for all", async () => {
  const waiters = 12;
  const addresses = Array.from({ length: 2_000 }, (_, n) => answer(Buffer.of(192, 0, n >> 8, n & 0xff)));
  const replies: (() => void)[] = [];
  await using upstream = new UdpUpstream((query, reply) =>
    replies.push(() => reply(aReplyTo(query, 0, query.includes("other") ? [answer()] : addresses))),
  );
  const queryPath = new QueryPath({ behaviour: { guardsLoops: false } });
  const host: Server = { ...upstream.server, from: "host" };
  const clients = Array.from({ length: waiters }, () => clientOf(host));
  let turn = 0;
  const turns = new Map<number, number>();
  const all = clients.map(async (client, id) => {
    const reply = await queryPath.query(client, aQuery({ id, name: "example.org" }), "tcp");
    turns.set(turn, (turns.get(turn) ?? 0) + 1);
    return reply;
  });
  await upstream.receives(1);
  for (const each of replies) each();
  let isDone = false;
  const nextTurn = (): void => {
    turn++;
    // The memory of the reply is used again.
    if (turn === 2) void queryPath.query(clientOf(host), aQuery({ name: "other.example" }));
    for (const each of replies.splice(1)) each();
    if (!isDone) setImmediate(nextTurn);
  };
  setImmediate(nextTurn);
  const got = await Promise.all(all);
  isDone = true;
  assert.deepEqual(
    got.map(({ id, answers }) => [id, answers.length]),
    clients.map((_, id) => [id, addresses.length]),
  );
  for (const { answers } of got) assert.deepEqual(answers.at(-1)?.data, Buffer.of(192, 0, 1_999 >> 8, 1_999 & 0xff));
  const most = Math.floor(LIMITS.joinedReplyBytes / (addresses.length * 16));
  assert.ok(Math.max(...turns.values()) <= most, `${[...turns.values()].join()} of ${most}`);
});

test("a query with its own options, or without recursion, is forwarded unchanged", async () => {
  await using upstream = new UdpUpstream(good);
  const queryPath = new QueryPath();
  const client = clientOf(upstream.server);
  const subnet = aQuery({ name: "example.org", opt: { options: [[8, Buffer.of(0, 1, 24, 0, 192, 0, 2)]] } });
  const plain = aQuery({ name: "example.org", flags: 0 });
  for (const query of [subnet, subnet, plain]) {
    const { id, answers } = await queryPath.query(client, query);
    assert.deepEqual([id, answers.length], [0x1234, 1]);
  }
  assert.deepEqual(
    upstream.queries.map((query) => query.subarray(2)),
    [subnet, subnet, plain].map((query) => query.subarray(2)),
  );
});

test("a server that loops back to a container is not used for it, and all others continue to use it", async () => {
  const queryPath = new QueryPath();
  const inner = clientOf();
  const host: { server?: Server } = {};
  // It forwards its queries to us, like a container that uses dns11.
  await using upstream = new UdpUpstream((query, reply) => {
    const { server } = host;
    assert.ok(server);
    void queryPath
      .raw(Object.assign(inner, { view: clientOf(server).view }), query)
      .then((answered) => reply(answered));
  }, "host");
  host.server = upstream.server;
  const outer = clientOf(upstream.server);
  const reply = await queryPath.query(outer, aQuery({ name: "example.org", opt: {} }));
  // The answer for the container in the loop came back through the loop.
  assert.equal(reply.rcode, 2);
  assert.match(reply.additionals[0]?.data.toString() ?? "", /forwarding loop back to dns11/);
  const before = upstream.queries.length;
  await queryPath.query(outer, aQuery({ name: "other.example.org" }));
  assert.ok(upstream.queries.length > before, "the container outside the loop still queries it");
  const looping = await queryPath.query(inner, aQuery({ name: "third.example.org", opt: {} }));
  assert.match(looping.additionals[0]?.data.toString() ?? "", /forwarding loop back to dns11/);
});

test("an attacker who reads a probe below its own name affects only that name and only itself", async () => {
  const seen: string[] = [];
  let isSlow = true;
  // The authoritative servers are the attacker's: they see queries below the zone.
  await using upstream = new UdpUpstream((query, reply) => {
    const name = readName(query, 12).text;
    if (name.includes("dns11-loop")) seen.push(name);
    if (!isSlow) good(query, reply);
  }, "host");
  const queryPath = new QueryPath({ now: realNow });
  const [attacker, victim] = [clientOf(upstream.server), clientOf(upstream.server)];
  const zone = "zone.attacker.test";
  void queryPath.query(attacker, aQuery({ name: zone }));
  await upstream.receives(1);
  void queryPath.query(attacker, aQuery({ name: zone }));
  await upstream.receives(3);
  const below = seen.find((name) => name.endsWith(zone));
  assert.ok(below !== undefined);
  assert.equal((await queryPath.query(attacker, aQuery({ name: below, type: TYPE.TXT }))).rcode, 3);
  isSlow = false;
  for (const [client, name, rcode] of [
    [victim, "victim.test", 0],
    [victim, `x.${zone}`, 0],
    [attacker, "anything.test", 0],
    [attacker, `y.${zone}`, 2],
  ] as const) {
    assert.equal((await queryPath.query(client, aQuery({ name }))).rcode, rcode, name);
  }
});

test("an unrelated reply goes on to the next server, and is reported if there is none", async () => {
  const strange: UdpScript = (query, reply) =>
    reply(aReplyTo(query, 0, [aRecord({ owner: "victim.example.test", type: TYPE.A, data: Buffer.of(6, 6, 6, 6) })]));
  await using first = new UdpUpstream(strange);
  await using second = new UdpUpstream(good);
  const queryPath = new QueryPath();
  assert.equal((await queryPath.query(clientOf(first.server, second.server), QUERY)).answers.length, 1);
  const alone = await queryPath.query(clientOf(first.server), aQuery({ name: "example.org", opt: {} }));
  assert.deepEqual([alone.rcode, alone.answers.length], [2, 0]);
  assert.match(alone.additionals[0]?.data.toString() ?? "", /the reply is about another name/);
  const unchecked = new QueryPath({ behaviour: { checksReplies: false } });
  assert.equal((await unchecked.query(clientOf(first.server), QUERY)).answers[0]?.owner, "victim.example.test");
});

test("unrelated records are neither passed on nor cached", async () => {
  const poisoned: UdpScript = (query, reply) =>
    reply(aReplyTo(query, 0, [answer(), aRecord({ owner: "victim.test", type: TYPE.A, data: Buffer.of(6, 6, 6, 6) })]));
  await using upstream = new UdpUpstream(poisoned);
  const queryPath = new QueryPath();
  const client = clientOf(upstream.server);
  for (let round = 0; round < 2; round++) {
    const { answers } = await queryPath.query(client, aQuery({ name: "example.org" }));
    assert.deepEqual(
      answers.map(({ owner }) => owner.toLowerCase()),
      ["example.org"],
    );
  }
});

test("a bare header can refuse a query, but not deny a name", async () => {
  await using first = new UdpUpstream((query, reply) => {
    const header = Buffer.concat([query.subarray(0, 2), Buffer.from("81830000000000000000", "hex")]);
    reply(header);
    good(query, reply);
  });
  assert.deepEqual((await new QueryPath().query(clientOf(first.server), QUERY)).rcode, 0);
  await using second = new UdpUpstream((query, reply) =>
    reply(Buffer.concat([query.subarray(0, 2), Buffer.from("81850000000000000000", "hex")])),
  );
  const refused = await new QueryPath().query(clientOf(second.server), aQuery({ name: "example.org", opt: {} }));
  assert.match(refused.additionals[0]?.data.toString() ?? "", /REFUSED/);
});

test("the limits of one container do not fail the queries of others that joined", async () => {
  const [udp, tcp] = await startBoth(
    (query, reply) => {
      const message = aReplyTo(query);
      message[2] = (message[2] ?? 0) | 2;
      setImmediate(() => reply(message));
    },
    (query, socket) => write(socket, aReplyTo(query, 0, [answer()])),
  );
  await using upstream = udp;
  await using _stream = tcp;
  const queryPath = new QueryPath({ behaviour: { guardsLoops: false } });
  const host: Server = { ...upstream.server, from: "host" };
  const [greedy, other] = [clientOf(host), clientOf(host)];
  assert.ok(greedy.shares.upstreamStreams.take(LIMITS.upstreamStreams.each));
  const replies = await Promise.all([
    queryPath.query(greedy, QUERY),
    queryPath.query(other, QUERY),
    queryPath.query(other, QUERY, "tcp"),
  ]);
  assert.deepEqual(
    replies.map(({ rcode, flags, answers }) => [rcode, flags.includes("tc"), answers.length]),
    [
      [0, true, 0],
      [0, false, 1],
      [0, false, 1],
    ],
  );
});

test("a query of a node, which has less time, does not take that of others for the same question", async () => {
  const held: (() => void)[] = [];
  await using upstream = new UdpUpstream((query, reply) => held.push(() => good(query, reply)), "host");
  using clock = new Clock();
  const queryPath = new QueryPath({ now: clock.now, behaviour: { guardsLoops: false } });
  const [node, other] = [clientOf(upstream.server), clientOf(upstream.server)];
  node.view = { ...node.view, budgetMs: LIMITS.nodeBudgetMs };
  const replies = [queryPath.query(node, QUERY), queryPath.query(other, QUERY)] as const;
  await upstream.receives(2);
  clock.advance(LIMITS.nodeBudgetMs);
  assert.equal((await replies[0]).rcode, 2);
  for (const reply of held) reply();
  assert.equal((await replies[1]).answers.length, 1);
});

test("a server without EDNS for one container is still queried with it for DNSSEC records", async () => {
  await using upstream = new UdpUpstream((query, reply) =>
    query.readUInt16BE(10) > 0 && !query.includes(Buffer.from("signed"))
      ? reply(aReplyTo(query, 1))
      : good(query, reply),
  );
  const queryPath = new QueryPath();
  const client = clientOf(upstream.server);
  await queryPath.query(client, QUERY);
  await queryPath.query(client, aQuery({ name: "plain.example.org" }));
  assert.equal(upstream.queries.at(-1)?.readUInt16BE(10), 0);
  await queryPath.query(client, aQuery({ name: "signed.example.org", opt: { isDnssecOk: true } }));
  assert.equal(upstream.queries.at(-1)?.readUInt16BE(10), 1);
});

test("a refused TCP connection does not count against the server if only a container chose TCP", async () => {
  await using upstream = new UdpUpstream(good);
  const queryPath = new QueryPath();
  const client = clientOf(upstream.server);
  const plain = aQuery({ name: "example.org", flags: 0 });
  assert.equal((await queryPath.query(client, plain, "tcp")).rcode, 2);
  assert.deepEqual(queryPath.health, []);
  assert.equal((await queryPath.query(client, QUERY)).answers.length, 1);
});

// An exception in any of these places costs the query, which gets an error reply, and leaves nothing behind.
for (const [where, spoil] of Object.entries<(queryPath: QueryPath, isBroken: () => boolean) => void>({
  "the cache": ({ cache }, isBroken) => {
    const sound = cache.put.bind(cache);
    cache.put = (...parts) => (isBroken() ? assert.fail("an internal error") : sound(...parts));
  },
  "the loop guard": ({ guard: loops }, isBroken) => {
    const sound = loops.loopingServers.bind(loops);
    loops.loopingServers = (...parts) => (isBroken() ? assert.fail("an internal error") : sound(...parts));
  },
})) {
  test(`an internal error in ${where} costs one query, and the next one is served`, async () => {
    const errors: string[] = [];
    guard.install((error, entrance) => errors.push(`${entrance}: ${(error as Error).message}`));
    try {
      await using upstream = new UdpUpstream(good);
      const queryPath = new QueryPath();
      const client = clientOf(upstream.server);
      let isBroken = true;
      spoil(queryPath, () => isBroken);
      assert.equal((await queryPath.query(client, aQuery({ name: "example.org", opt: {} }))).rcode, 2);
      assert.deepEqual(errors, ["upstream: an internal error"]);
      assert.deepEqual([queryPath.forwarder.inFlight, client.slots.taken, client.shares.queryBytes.taken], [0, 0, 0]);
      isBroken = false;
      assert.equal((await queryPath.query(client, QUERY)).answers.length, 1);
    } finally {
      guard.uninstall();
    }
  });
}
