// Proves that the kernel says what the process says, byte for byte, for random queries: names of every local source, types,
// letter case, flags and EDNS, in the default mode, in strict mode, and with each switch on which an answer depends.
// KERNEL_QUERIES is the number of queries of each mode.

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";

import { KERNEL_ANSWER_LIMITS } from "../../../src/features/kernel-answers/limits.ts";
import { type Behaviour, DEFAULT_BEHAVIOUR, STRICT_BEHAVIOUR } from "../../../src/base/model/behaviour.ts";
import type { View } from "../../../src/base/model/view.ts";
import { KernelAnswers } from "../../../src/features/kernel-answers/kernel/kernel-answers.ts";
import type { KernelSpace } from "../../../src/features/kernel-answers/kernel/kernel-space.ts";
import { aWorld } from "../../fuzz/corpus.ts";
import { Random } from "../../fuzz/random.ts";
import { PROCESS_PORT, Process, kernelReply, sorted } from "./kernel-program.ts";
import { type QueryParts, TYPE, aQuery } from "../../support/scripted/builders.ts";
import { declarationsFor } from "../../support/scripted/declarations.ts";

const QUERIES = Number(process.env["KERNEL_QUERIES"] ?? 2_500);
const SEED = 20_260_102;
// After so many queries the names are as new on average.
const FORGET_EVERY = 200;

const DECLARED = `
records:
  shop.test:
    a: [10.0.0.1, 10.0.0.2]
    mx: [10 mail.shop.test, 20 mail2.shop.test]
    txt: v=spf1 -all
    ttl: 1m
  www.shop.test: {cname: Shop.test}
  one.shop.test: {a: 10.0.0.3, aaaa: "fd00::3"}
  alias.shop.test: {cname: one.shop.test, ttl: 7}
  db.shop.test: {cname: db}
  dbs.shop.test: {container: [db, web]}
  gone.shop.test: {cname: nobody}
  far.shop.test: {cname: Long.Name.Example.com}
  home.shop.test: {cname: localhost}
  "*.apps.test": {container: web}
  9.0.0.10.in-addr.arpa: {ptr: right.test}
`;
const declared = await declarationsFor(DECLARED);
const NAMES = [
  ...["web", "web.one", "shared", "many", "site", "db", "b.c.one", "mail.example.org", "c1.net1.br.net1", "long"],
  ...["nope", "example.org", "localhost", "x.localhost", "1.0.0.127.in-addr.arpa", "2.0.20.172.in-addr.arpa"],
  ...[
    "cluster.local",
    "web.dev.svc.cluster.local",
    "nope.dev.svc.cluster.local",
    "_http._tcp.web.dev.svc.cluster.local",
  ],
  ...["shop.test", "www.shop.test", "one.shop.test", "alias.shop.test", "db.shop.test", "dbs.shop.test"],
  ...["gone.shop.test", "far.shop.test", "home.shop.test", "x.apps.test", "y.x.apps.test", "9.0.0.10.in-addr.arpa"],
];
const TYPES = [TYPE.A, TYPE.AAAA, TYPE.PTR, TYPE.MX, TYPE.TXT, TYPE.SRV, TYPE.CNAME, 65, 255, 4711];

const kernel = new KernelAnswers(KERNEL_ANSWER_LIMITS);

function aRandomQuery(random: Random): Buffer {
  const spelled = [...random.pick(NAMES)].map((char) => (random.once(20) ? char.toUpperCase() : char)).join("");
  const name = random.once(2) ? spelled.toLowerCase() : spelled;
  const opt = random.once(3) ? { opt: anOpt(random) } : {};
  const flags = random.once(4) ? random.below(0x10000) & 0x7fff : 0x0100;
  const query: QueryParts = { id: random.below(0x10000), name, type: random.pick(TYPES), flags, ...opt };
  return aQuery(query);
}

function anOpt(random: Random): NonNullable<QueryParts["opt"]> {
  return {
    isDnssecOk: random.once(2),
    udpSize: random.pick([0, 512, 1232, 4096, 65_535]),
    ...(random.once(10) && { version: 1 }),
    ...(random.once(10) && { options: [[10, random.bytes(8)]] }),
  };
}

function openSpace(t: TestContext, behaviour: Behaviour): KernelSpace {
  kernel.setStyle(behaviour);
  const space = kernel.open();
  assert.ok(space !== undefined);
  t.after(() => space.close());
  space.serve(PROCESS_PORT);
  return space;
}

const BEHAVIOURS: readonly (readonly [string, Behaviour, number])[] = [
  ["in the default mode", DEFAULT_BEHAVIOUR, 1 / 4],
  ["in strict mode", STRICT_BEHAVIOUR, 1 / 30],
  ["without compression", { ...DEFAULT_BEHAVIOUR, compresses: false }, 1 / 20],
  ["where letter case decides", { ...DEFAULT_BEHAVIOUR, ignoresCase: false }, 1 / 20],
  ["without EDNS", { ...DEFAULT_BEHAVIOUR, speaksEdns: false }, 1 / 10],
  ["without an SOA", { ...DEFAULT_BEHAVIOUR, hasNegativeSoa: false }, 1 / 10],
];

for (const [mode, behaviour, part] of BEHAVIOURS) {
  test(`random queries get the same from the kernel and the process ${mode}`, (t) => {
    const world = aWorld(true);
    const view: View = { ...world, names: [...world.names, ...declared] };
    const space = openSpace(t, behaviour);
    const [alone, teaching] = [new Process(view, undefined, behaviour), new Process(view, space, behaviour)];
    let answered = 0;
    for (let index = 0; index < QUERIES; index++) {
      const random = new Random(SEED, index);
      if (random.once(FORGET_EVERY)) space.forget();
      const query = aRandomQuery(random);
      teaching.answer(query);
      const reply = kernelReply(space, query);
      if (reply === undefined) continue;
      const expected = alone.answer(query);
      assert.ok(expected !== undefined, `the process does not answer ${query.toString("hex")}`);
      assert.deepEqual(sorted(query, reply), sorted(query, expected), query.toString("hex"));
      answered++;
    }
    t.diagnostic(`${answered} of ${QUERIES} were answered by the kernel`);
    assert.ok(answered > QUERIES * part, `only ${answered} of ${QUERIES} were answered by the kernel`);
  });
}

const isRepeated = (t: TestContext, behaviour: Behaviour, ...[name, type]: readonly [string, number]): boolean => {
  const world = aWorld(false);
  const view: View = { ...world, names: [...world.names, ...declared] };
  const space = openSpace(t, behaviour);
  const query = aQuery({ name, type });
  new Process(view, space, behaviour).answer(query);
  return kernelReply(space, query) !== undefined;
};

test("answers of every local source are repeated, where they are plain", (t) => {
  for (const [name, type] of [
    ["web", TYPE.MX],
    ["web", TYPE.TXT],
    ["web", 65],
    ["shop.test", TYPE.A],
    ["shop.test", TYPE.MX],
    ["shop.test", TYPE.TXT],
    ["shop.test", TYPE.SRV],
    ["one.shop.test", TYPE.AAAA],
    ["alias.shop.test", TYPE.A],
    ["db.shop.test", TYPE.A],
    ["dbs.shop.test", TYPE.A],
    ["x.apps.test", TYPE.A],
    ["x.apps.test", TYPE.TXT],
    ["9.0.0.10.in-addr.arpa", TYPE.PTR],
    ["web.dev.svc.cluster.local", TYPE.A],
    ["localhost", TYPE.A],
    ["localhost", TYPE.AAAA],
    ["1.0.0.127.in-addr.arpa", TYPE.PTR],
  ] as const) {
    assert.ok(isRepeated(t, DEFAULT_BEHAVIOUR, name, type), `${name} ${type}`);
  }
});

test("not repeated are chains to random addresses, what is forwarded, rare types, and additional records", (t) => {
  for (const [name, type] of [
    ["localhost", TYPE.PTR + 4000],
    ["www.shop.test", TYPE.A],
    ["far.shop.test", TYPE.A],
    ["home.shop.test", TYPE.A],
    ["shop.test", 255],
    ["example.org", TYPE.A],
    ["_http._tcp.web.dev.svc.cluster.local", TYPE.SRV],
  ] as const) {
    assert.ok(!isRepeated(t, DEFAULT_BEHAVIOUR, name, type), `${name} ${type}`);
  }
});

test("failures are repeated once they are asked for again", (t) => {
  const world = aWorld(true);
  const view: View = { ...world, names: [...world.names, ...declared] };
  const space = openSpace(t, DEFAULT_BEHAVIOUR);
  const process = new Process(view, space);
  for (const name of ["nope.dev.svc.cluster.local", "nope", "x.invalid"]) {
    const query = aQuery({ name, type: TYPE.A });
    const expected = process.answer(query);
    assert.equal(kernelReply(space, query), undefined, name);
    const reply = afterAsking(query, process, space);
    assert.deepEqual(reply, expected, name);
  }
});

// A period may end between two queries.
function afterAsking(query: Buffer, process: Process, space: KernelSpace): Buffer | undefined {
  for (let endMs = performance.now() + 1_000; performance.now() < endMs; process.answer(query)) {
    const reply = kernelReply(space, query);
    if (reply !== undefined) return reply;
  }
  return undefined;
}

test("in strict mode names in lower case are repeated, with their owner in full and without EDNS", (t) => {
  for (const [name, type, expected] of [
    ["web", TYPE.A, true],
    ["web", TYPE.AAAA, true],
    ["2.0.20.172.in-addr.arpa", TYPE.PTR, true],
    ["Web", TYPE.A, false],
    ["shared", TYPE.A, false],
  ] as const) {
    assert.equal(isRepeated(t, STRICT_BEHAVIOUR, name, type), expected, `${name} ${type}`);
  }
});
