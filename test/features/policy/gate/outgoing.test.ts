// Proves what leaves the machine for a container whose policy is enforced, by what a server that answers with TTL 0 receives: in which
// form, how often the same, and how much in all; and that a program that only resolves its names meets none of that.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";

import { TYPE, aName, aNetwork, aQuery, aRecord, aReplyTo, aView } from "../../../support/scripted/builders.ts";
import { MODES, PolicedPath } from "../policed-path.ts";
import { readReply } from "../../../unit/support/reply.ts";
import type { UdpScript } from "../../../unit/support/upstreams.ts";
import { POLICY_LIMITS } from "../../../../src/features/policy/model/limits.ts";

const MINUTE_MS = 60_000;
const PER_MINUTE = POLICY_LIMITS.questionsPerMinute;
const BURST = 2 * PER_MINUTE;
const NXDOMAIN = 3;

function typeOf(query: Buffer): number {
  return readReply(query).question?.type ?? 0;
}

function nameOf(query: Buffer): string {
  return readReply(query).question?.name ?? "";
}

// Nothing that it answers may be cached.
const careless: UdpScript = (query, reply) => {
  const address = aRecord({ owner: Buffer.of(0xc0, 12), type: TYPE.A, ttl: 0, data: Buffer.of(192, 0, 2, 1) });
  reply(aReplyTo(query, 0, typeOf(query) === TYPE.A ? [address] : []));
};

// So many queries have come to the server.
async function untilLeft(held: readonly unknown[], count: number): Promise<void> {
  const endMs = performance.now() + 10_000;
  while (held.length < count) {
    assert.ok(performance.now() < endMs, `${held.length} of ${count} queries left`);
    await nextTurn();
  }
}

for (const mode of MODES) {
  test(`${mode}: a question leaves in lower case, and the answer has the letter case and the id of its client`, async () => {
    await using path = new PolicedPath(mode, { allow: ["exact.ok.test", "**.c.test"] }, careless);
    for (const name of ["ExAcT.oK.tEsT", "A.b.C.TEST"]) {
      const reply = readReply(await path.ask(aQuery({ id: 0xbeef, name })));
      assert.deepEqual([reply.id, reply.rcode, reply.question?.name], [0xbeef, 0, name]);
      assert.deepEqual([...(reply.answers[0]?.data ?? [])], [192, 0, 2, 1]);
      const [sent = Buffer.alloc(0), ...more] = path.left();
      assert.deepEqual([nameOf(sent), more.length], [name.toLowerCase(), 0]);
    }
    // A type that nobody shares an answer of is passed on as it is.
    const any = readReply(await path.ask(aQuery({ id: 0xcafe, name: "eXact.ok.test", type: 255 })));
    assert.deepEqual([any.id, any.rcode, any.question?.name], [0xcafe, 0, "eXact.ok.test"]);
    assert.deepEqual(
      path.left().map((sent) => nameOf(sent)),
      ["exact.ok.test"],
    );
  });

  test(`${mode}: an answer that was on its way when answers were forgotten is not given again`, async () => {
    const replies: (() => void)[] = [];
    const held: UdpScript = (query, reply) => void replies.push(() => careless(query, reply));
    await using path = new PolicedPath(mode, { allow: ["exact.ok.test"] }, held);
    const asked = path.ask(aQuery({ name: "exact.ok.test" }));
    await untilLeft(replies, 1);
    path.forget();
    replies[0]?.();
    await asked;
    const again = path.ask(aQuery({ name: "exact.ok.test" }));
    await untilLeft(replies, 2);
    replies[1]?.();
    assert.equal(readReply(await again).answers.length, 1);
    assert.equal(path.left().length, 2);
  });

  test(`${mode}: a container learns of no other one by asking in another class`, async () => {
    await using path = new PolicedPath(mode, { peers: "deny" }, careless);
    const { names } = aView([aNetwork({ members: [{ names: ["web"], ipv4: "172.20.0.2" }] })]);
    path.client.view = { ...path.client.view, names };
    for (const of of [1, 3, 4, 255])
      for (const [name, type] of [
        ["web", TYPE.A],
        ["nobody", TYPE.A],
        ["2.0.20.172.in-addr.arpa", TYPE.PTR],
      ] as const) {
        const reply = await path.ask(aQuery({ name, type, class: of }));
        assert.equal(readReply(reply).rcode, NXDOMAIN, `${of} ${name}`);
      }
    assert.deepEqual(path.left(), []);
  });

  test(`${mode}: what a client chooses beside name and type is the same for all`, async () => {
    await using path = new PolicedPath(mode, { allow: ["**.c.test"] }, careless);
    const forms = [
      { id: 1, flags: 0x0100 },
      { id: 2, flags: 0x0000 },
      { id: 3, flags: 0x0130 },
      { id: 4, flags: 0x0150 },
    ];
    for (const [index, form] of forms.entries()) {
      for (const udpSize of [1_300, 4_000, 0xffff]) {
        const options = [[10, Buffer.from("secret12")] as const];
        const reply = await path.ask(
          aQuery({ ...form, name: `n${index}-${udpSize}.c.test`, opt: { udpSize, options } }),
        );
        assert.equal(readReply(reply).id, form.id);
      }
    }
    const sent = path.left();
    assert.equal(sent.length, 12);
    const rest = new Set(sent.map((each) => each.toString("hex", 2, 4) + each.toString("hex", each.indexOf(0, 12))));
    assert.equal(rest.size, 1, [...rest].join(" "));
    assert.notDeepEqual(sent.map((each) => each.readUInt16BE(0)).slice(0, 4), [1, 1, 1, 2]);
  });

  test(`${mode}: the same question leaves once in half a minute, whatever its TTL and its answer`, async () => {
    const script: UdpScript = (query, reply) => {
      if (nameOf(query) === "none.test") reply(aReplyTo(query, NXDOMAIN));
      else careless(query, reply);
    };
    await using path = new PolicedPath(mode, { allow: ["exact.test", "none.test"] }, script);
    for (const [name, rcode] of Object.entries({ "exact.test": 0, "none.test": NXDOMAIN })) {
      const start = path.nowMs;
      for (let times = 0; times < 100; times++) {
        path.nowMs = start + (times * POLICY_LIMITS.recentMs) / 101;
        const reply = readReply(
          await path.ask(aQuery({ id: times, name: times % 2 === 0 ? name : name.toUpperCase() })),
        );
        assert.deepEqual([reply.id, reply.rcode], [times, rcode]);
      }
      assert.equal(path.left().length, 1, name);
      path.nowMs = start + POLICY_LIMITS.recentMs;
      await path.ask(aQuery({ name }));
      assert.equal(path.left().length, 1, name);
    }
    assert.deepEqual(path.refusals, []);
  });

  test(`${mode}: questions that leave are counted: types and names that are listed, too`, async () => {
    await using path = new PolicedPath(mode, { allow: ["exact.test", "other.test"] }, careless);
    const tries = BURST + 50;
    const answered = async (query: (index: number) => Buffer): Promise<number> => {
      let count = 0;
      for (let index = 0; index < tries; index++) if (readReply(await path.ask(query(index))).rcode === 0) count++;
      return count;
    };
    // Each type is another question.
    assert.equal(await answered((index) => aQuery({ name: "exact.test", type: 1_000 + index })), BURST);
    assert.equal(path.left().length, BURST);
    assert.equal(path.refusals.at(-1)?.reason, "questions");
    assert.match(
      path.refusals.at(-1)?.text ?? "",
      new RegExp(`more than ${PER_MINUTE} questions in a minute leave the machine under exact.test`),
    );
    for (let minute = 0; minute < 3; minute++) {
      path.nowMs += MINUTE_MS;
      const sizes = (index: number): Buffer =>
        aQuery({ name: "exact.test", type: 5_000 + minute * tries + index, opt: { udpSize: 512 + index } });
      assert.equal(await answered(sizes), PER_MINUTE);
      assert.equal(path.left().length, PER_MINUTE);
    }
    // Each rule has its own, and what was answered lately is, still.
    assert.equal(readReply(await path.ask(aQuery({ name: "other.test" }))).rcode, 0);
    assert.equal(path.left().length, 1);
    path.nowMs += 1;
    const last = aQuery({ name: "exact.test", type: 5_000 + 2 * tries, opt: { udpSize: 512 } });
    assert.equal(readReply(await path.ask(last)).rcode, 0);
    assert.deepEqual(path.left(), []);
  });

  test(`${mode}: so are reverse names of what was answered, and names that are known`, async () => {
    await using path = new PolicedPath(mode, { allow: ["10.0.0.0/8", "**.c.test"], newNamesPerMinute: 10 }, careless);
    const perMinute = POLICY_LIMITS.wildcardQuestionsPerMinute + 20;
    for (let index = 0; index < 3 * perMinute; index++)
      await path.ask(aQuery({ name: `${index % 250}.${Math.trunc(index / 250)}.0.10.in-addr.arpa`, type: TYPE.PTR }));
    assert.equal(path.left().length, BURST);
    path.nowMs += MINUTE_MS;
    const types = [TYPE.A, TYPE.AAAA, TYPE.CNAME, TYPE.HTTPS, 64, TYPE.SRV, TYPE.PTR, TYPE.MX];
    for (let round = 0; round < 9; round++) {
      for (let name = 0; name < 10; name++) {
        for (const type of types) {
          const opt = { udpSize: 2_000 + round, isDnssecOk: round % 2 === 0 };
          await path.ask(aQuery({ name: `n${name}.c.test`, type, opt }));
        }
      }
    }
    assert.equal(path.left().length, 2 * perMinute);
    assert.equal(path.refusals.at(-1)?.rule?.text, "**.c.test");
  });

  test(`${mode}: programs that resolve their names all the time are never refused`, async () => {
    await using path = new PolicedPath(mode, { allow: ["**.c.test", ...listed(30)] }, careless);
    const others = ["other", "another"].map(() => path.another());
    let asked = 0;
    for (let second = 0; second < 300; second++) {
      path.nowMs += 1_000;
      // IPv4 and IPv6 of one name that is new, and more often than a question leaves of each of thirty names.
      const names = [...(second % 10 === 0 ? listed(30) : []), `new${second}.c.test`];
      for (const name of names) {
        for (const type of [TYPE.A, TYPE.AAAA]) {
          asked++;
          const reply = readReply(await path.ask(aQuery({ id: asked & 0xffff, name, type })));
          assert.equal(reply.rcode, 0, `${name} after ${second} s`);
        }
      }
      // Others that have the policy are others.
      if (second % 10 !== 0) continue;
      for (const client of others)
        assert.equal(readReply(await path.ask(aQuery({ name: "listed1.test" }), "udp", client)).rcode, 0);
    }
    assert.deepEqual(path.refusals, []);
  });
}

function listed(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `listed${index}.test`);
}

test("a client that retries by TCP, or while a server is silent, is not counted again and again", async () => {
  const big: UdpScript = (query, reply) => {
    const address = aRecord({ owner: aName(nameOf(query)), type: TYPE.A, ttl: 0, data: Buffer.of(192, 0, 2, 1) });
    reply(
      aReplyTo(
        query,
        0,
        Array.from({ length: 40 }, () => address),
      ),
    );
  };
  await using path = new PolicedPath("default", { allow: ["big.test"] }, big);
  for (let times = 0; times < 200; times++) {
    const short = readReply(await path.ask(aQuery({ name: "big.test" })));
    assert.match(short.flags, / tc /);
    const whole = readReply(await path.ask(aQuery({ name: "big.test" }), "tcp"));
    assert.equal(whole.answers.length, 40);
  }
  assert.ok(path.left().length <= 2);
  assert.deepEqual(path.refusals, []);
});

test("a program whose threads ask for one name at once asks once", async () => {
  const waiting: (() => void)[] = [];
  const slow: UdpScript = (query, reply) => void waiting.push(() => careless(query, reply));
  await using path = new PolicedPath("default", { allow: ["exact.test"] }, slow);
  const all = Array.from({ length: 3 * BURST }, async (_, id) => await path.ask(aQuery({ id, name: "exact.test" })));
  await path.upstream.receives(1);
  for (const reply of waiting) reply();
  for (const [id, reply] of (await Promise.all(all)).entries()) {
    const { rcode, id: answered } = readReply(reply);
    assert.deepEqual([rcode, answered], [0, id]);
  }
  // Whether the server leads back here is asked as well.
  const left = (): number => path.left().filter((sent) => nameOf(sent) === "exact.test").length;
  assert.equal(left(), 1);
  // What nobody shares an answer of is sent each time, and so counted.
  const any = Array.from({ length: 3 * BURST }, async () => await path.ask(aQuery({ name: "exact.test", type: 255 })));
  await path.upstream.receives(BURST - 1);
  for (const reply of waiting) reply();
  const answers = (await Promise.all(any)).map((reply) => readReply(reply).rcode);
  assert.equal(answers.filter((rcode) => rcode === 0).length, BURST - 1);
  assert.equal(left(), BURST - 1);
});

test("an error of ours is repeated for some seconds", async () => {
  const failing: UdpScript = (query, reply) => reply(aReplyTo(query, 2));
  for (const mode of MODES) {
    await using path = new PolicedPath(mode, { allow: ["exact.test"] }, failing);
    for (let times = 0; times < 20; times++)
      assert.equal(readReply(await path.ask(aQuery({ name: "exact.test" }))).rcode, 2);
    assert.equal(path.left().length, 1);
    path.nowMs += POLICY_LIMITS.recentFailureMs;
    await path.ask(aQuery({ name: "exact.test" }));
    assert.equal(path.left().length, 1);
  }
});

test("the time that has passed is taken off the TTLs", async () => {
  const ttls = aRecord({ owner: Buffer.of(0xc0, 12), type: TYPE.A, ttl: 300, data: Buffer.of(192, 0, 2, 1) });
  await using path = new PolicedPath("strict", { allow: ["exact.test"] }, (query, reply) =>
    reply(aReplyTo(query, 0, [ttls])),
  );
  await path.ask(aQuery({ name: "exact.test" }));
  path.nowMs += 12_345;
  assert.equal(readReply(await path.ask(aQuery({ name: "exact.test" }))).answers[0]?.ttl, 288);
  assert.equal(path.left().length, 1);
});

test("popular names are not asked in the background, and a restart gives no new questions", async () => {
  const minute: UdpScript = (query, reply) =>
    reply(
      aReplyTo(query, 0, [
        aRecord({ owner: Buffer.of(0xc0, 12), type: TYPE.A, ttl: 60, data: Buffer.of(192, 0, 2, 1) }),
      ]),
    );
  await using path = new PolicedPath("default", { allow: ["exact.test"] }, minute);
  for (let second = 0; second < 60; second++) {
    await path.ask(aQuery({ name: "exact.test" }));
    path.nowMs += 1_000;
  }
  assert.equal(path.left().length, 1);
  for (let index = 0; index < BURST + 5; index++) await path.ask(aQuery({ name: "exact.test", type: 1_000 + index }));
  assert.equal(readReply(await path.ask(aQuery({ name: "exact.test", type: 9 }))).rcode, NXDOMAIN);
  const again = path.another(path.policy);
  assert.equal(readReply(await path.ask(aQuery({ name: "exact.test", type: 10 }), "udp", again)).rcode, NXDOMAIN);
});

test("a policy that only records refuses nothing, and says what it would have refused", async () => {
  await using path = new PolicedPath("default", { mode: "audit", allow: ["exact.test"] }, careless);
  for (let times = 0; times < 2 * BURST; times++)
    assert.equal(readReply(await path.ask(aQuery({ name: "Exact.test" }))).rcode, 0);
  assert.equal(path.left().filter((sent) => nameOf(sent) === "Exact.test").length, 2 * BURST);
  assert.equal(path.refusals.length, 0);
  for (let index = 0; index < BURST; index++) await path.ask(aQuery({ name: "exact.test", type: 1_000 + index }));
  assert.deepEqual(
    [...new Set(path.refusals.map(({ reason, isEnforced }) => `${reason} ${isEnforced}`))],
    ["questions false"],
  );
});
