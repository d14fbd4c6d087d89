// Proves the program that answers in the kernel, packet by packet (BPF_PROG_TEST_RUN): it says what the process says, byte
// for byte and for any message; it leaves to the process what is not plain; and it forgets when it is told to.

import { LOCAL_SOURCE } from "../../../src/base/model/local-source.ts";
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";

import { Fault, reasonOf } from "../../../src/base/lib/fault.ts";
import { KERNEL_ANSWER_LIMITS } from "../../../src/features/kernel-answers/limits.ts";
import type { VisibleNames } from "../../../src/base/model/visible-names.ts";
import { KernelAnswers } from "../../../src/features/kernel-answers/kernel/kernel-answers.ts";
import type { KernelSpace } from "../../../src/features/kernel-answers/kernel/kernel-space.ts";
import { REFUSED, loadProgram, runProgram } from "../../../src/kernel/bpf.ts";
import { aWorld } from "../../fuzz/corpus.ts";
import { fuzzKernel } from "./fuzz/kernel-run.ts";
import { TYPE, aNetwork, aQuery, aView } from "../../support/scripted/builders.ts";
import { PROCESS_PORT as PORT, Process, kernelReply as ask, sorted } from "./kernel-program.ts";
import { CLIENT_PORT, type PacketParts, aPacket } from "../../support/packets/udp-packet.ts";

const SEED = 20_260_101;
const PACKETS = 20_000;
const TTL_SECONDS = 5;
/** More than are mapped at first. */
const MANY_SPACES = 300;
// Its highest bit is set: the program compares all 32.
const OWN_MARK = 0xd110_0001;
const COOKIE: readonly (readonly [number, Buffer])[] = [[10, Buffer.of(1, 2, 3, 4, 5, 6, 7, 8)]];

const kernel = new KernelAnswers(KERNEL_ANSWER_LIMITS);
const into = Buffer.alloc(70_000);

function openSpace(t: TestContext): KernelSpace {
  const space = kernel.open(OWN_MARK);
  assert.ok(space !== undefined);
  t.after(() => space.close());
  space.serve(PORT);
  return space;
}

test("any packet gets from the kernel what the process says, or goes on as it is", () => {
  const { violation, outcomes } = fuzzKernel({ seed: SEED, inputs: PACKETS });
  assert.equal(violation && `${violation.index}: ${String(violation.error)}\n${violation.hex}`, undefined);
  // A run without any answers would prove little.
  for (const [outcome, count] of Object.entries(outcomes)) assert.ok(count > PACKETS / 100, `${outcome}: ${count}`);
});

test("where the verifier refuses a program, the message is short, and the cause is what the verifier says", () => {
  // It ends without a result: exit, and nothing before.
  const noResult = Uint8Array.of(0x95, 0, 0, 0, 0, 0, 0, 0);
  assert.throws(
    () => loadProgram("no_result", noResult, "GPL"),
    (error) => {
      assert.ok(error instanceof Fault);
      assert.deepEqual([error.code, error.message], [REFUSED, "the kernel refused the program"]);
      assert.match(reasonOf(error), /bpf PROG_LOAD of no_result.*R0 !read_ok/);
      return true;
    },
  );
});

test("plain queries for local names are answered by the kernel once the process has answered them", (t) => {
  const network = aNetwork({
    name: "one",
    members: [
      { names: ["web"], ipv4: "172.20.0.2", ipv6: "fd11::2" },
      { names: ["shared"], ipv4: "172.20.0.3" },
      { names: ["shared"], ipv4: "172.20.0.4" },
    ],
  });
  const space = openSpace(t);
  const process = new Process(aView([network]), space);
  for (const query of [
    aQuery({ name: "web", type: TYPE.A }),
    aQuery({ name: "WEB.one", type: TYPE.AAAA }),
    aQuery({ name: "shared", type: TYPE.A, opt: { isDnssecOk: true } }),
    aQuery({ name: "shared", type: TYPE.AAAA }),
    aQuery({ name: "2.0.20.172.in-addr.arpa", type: TYPE.PTR, flags: 0x0130 }),
    aQuery({ name: `2${".0".repeat(27)}.1.1.d.f.ip6.arpa`, type: TYPE.PTR, opt: {} }),
  ]) {
    assert.equal(ask(space, query), undefined, "before the process has answered");
    const expected = process.answer(query) as Buffer;
    const reply = ask(space, query);
    assert.ok(reply !== undefined, "after it");
    assert.deepEqual(sorted(query, reply), sorted(query, expected));
  }
  assert.deepEqual([space.answered, space.passed, space.size], [6, 6, 6]);
});

test("each of many spaces has its own answers, those that were opened first as well", (t) => {
  const many = new KernelAnswers(KERNEL_ANSWER_LIMITS);
  t.after(() => many.close());
  const spaces = Array.from({ length: MANY_SPACES }, () => many.open());
  const query = aQuery({ name: "web", type: TYPE.A });
  const replies = (): Set<string | undefined> =>
    new Set(spaces.map((space) => space && ask(space, query)?.toString("hex")));
  for (const [index, space] of spaces.entries()) {
    assert.ok(space !== undefined);
    space.serve(PORT);
    const members = [{ names: ["web"], ipv4: `172.20.${index >> 8}.${index & 255}` }];
    new Process(aView([aNetwork({ members })]), space).answer(query);
  }
  assert.equal(replies().size, MANY_SPACES);
  const counts = spaces.map((space) => [space?.answered, space?.passed, space?.size]);
  assert.deepEqual(
    counts,
    spaces.map(() => [1, 0, 1]),
  );
  many.forgetAll();
  assert.deepEqual([...replies()], [undefined]);
});

test("addresses are in a new order each time, and every order occurs", (t) => {
  const members = [1, 2, 3].map((last) => ({ names: ["shared"], ipv4: `172.20.0.${last}` }));
  const space = openSpace(t);
  const query = aQuery({ name: "shared", type: TYPE.A });
  new Process(aView([aNetwork({ members })]), space).answer(query);
  const orders = new Set<string>();
  // One of six orders is missing after so many draws less than once in 10^30 runs.
  for (let i = 0; i < 400; i++) orders.add(lastBytesOf(ask(space, query) as Buffer, query.length));
  assert.equal(orders.size, 6);
});

function lastBytesOf(reply: Buffer, end: number): string {
  return [1, 2, 3].map((record) => reply[end + record * 16 - 1]).join();
}

test("what is not plain goes to the process: names with many addresses, other types and classes, options, flags", (t) => {
  const view = aWorld(true);
  const space = openSpace(t);
  const process = new Process(view, space);
  const plain = aQuery({ name: "web", type: TYPE.A });
  process.answer(plain);
  assert.ok(ask(space, plain) !== undefined);
  for (const query of [
    aQuery({ name: "many", type: TYPE.A }),
    aQuery({ name: "web", type: 4711 }),
    aQuery({ name: "web", type: TYPE.A, class: 3 }),
    aQuery({ name: "web", type: TYPE.A, class: 255 }),
    aQuery({ name: "web", type: TYPE.A, flags: 0x0500 }),
    aQuery({ name: "web", type: TYPE.A, flags: 0x2100 }),
    aQuery({ name: "web", type: TYPE.A, flags: 0x0140 }),
    aQuery({ name: "web", type: TYPE.A, opt: { version: 1 } }),
    aQuery({ name: "web", type: TYPE.A, opt: { options: [[12, Buffer.alloc(8)]] } }),
    aQuery({ name: "web", type: TYPE.A, opt: { options: [...COOKIE, ...COOKIE] } }),
    aQuery({ name: "web", type: TYPE.A, opt: { options: COOKIE }, tail: Buffer.of(0) }),
    aQuery({ name: "web", type: TYPE.A, counts: [2, 0, 0, 0] }),
    Buffer.concat([plain, Buffer.of(0)]),
    aQuery({ name: "no.such.name", type: TYPE.A }),
  ]) {
    process.answer(query);
    assert.equal(ask(space, query), undefined, query.toString("hex"));
  }
});

test("a cookie, as dig and c-ares send it, changes nothing: the answer has an OPT without options", (t) => {
  const space = openSpace(t);
  const process = new Process(aWorld(true), space);
  const query = aQuery({ name: "web", type: TYPE.A, opt: { options: COOKIE, isDnssecOk: true } });
  const expected = process.answer(query);
  assert.deepEqual(ask(space, query), expected);
  const whole = aQuery({ name: "web", type: TYPE.A, opt: { options: [[10, Buffer.alloc(40, 7)]], isDnssecOk: true } });
  assert.deepEqual(ask(space, whole), expected);
});

test("damaged packets are not answered, and nothing of them changes but the port", (t) => {
  const space = openSpace(t);
  const query = aQuery({ name: "web", type: TYPE.A });
  new Process(aWorld(true), space).answer(query);
  assert.ok(ask(space, query) !== undefined);
  const port = (parts: PacketParts): Buffer => aPacket({ payload: query, ...parts });
  const passed: readonly PacketParts[] = [
    { ipLengthError: 1 },
    { ipLengthError: -4 },
    { udpLengthError: 1 },
    { udpLengthError: -1 },
    { tail: Buffer.alloc(3) },
    { options: Buffer.alloc(4, 1) },
    { options: Buffer.alloc(40, 1) },
    ...[0, 1, 11, 12, 13, 17].map((length) => ({ payload: query.subarray(0, length) })),
    { payload: Buffer.alloc(1400, 0x3f) },
  ];
  for (const parts of passed) {
    const result = runProgram(space.program, port(parts), into);
    assert.deepEqual(result, port({ destinationPort: PORT, ...parts }), JSON.stringify(parts));
  }
  const untouched: readonly PacketParts[] = [
    { to: [127, 0, 0, 12] },
    { to: [10, 0, 0, 11] },
    { destinationPort: 54 },
    { protocol: 6 },
    { etherType: 0x86dd },
    { fragment: 0x2000 },
    { fragment: 0x0001 },
  ];
  for (const parts of untouched) {
    assert.deepEqual(runProgram(space.program, port(parts), into), port(parts), JSON.stringify(parts));
  }
});

test("replies of the process get port 53, and nothing else does", (t) => {
  const space = openSpace(t);
  const reply = { from: [127, 0, 0, 11], to: [127, 0, 0, 1], sourcePort: PORT, destinationPort: CLIENT_PORT };
  const run = (parts: PacketParts): Buffer => Buffer.from(runProgram(space.program, aPacket(parts), into));
  assert.deepEqual(run(reply), aPacket({ ...reply, sourcePort: 53 }));
  assert.deepEqual(run({ ...reply, sourcePort: PORT + 1 }), aPacket({ ...reply, sourcePort: PORT + 1 }));
  assert.deepEqual(run({ ...reply, from: [127, 0, 0, 1] }), aPacket({ ...reply, from: [127, 0, 0, 1] }));
  space.close();
});

test("no namespace sees another's answers, whatever mark its packets have", (t) => {
  const [one, two] = [openSpace(t), openSpace(t)];
  const query = aQuery({ name: "web", type: TYPE.A });
  new Process(aView([aNetwork({ members: [{ names: ["web"], ipv4: "172.20.0.2" }] })]), one).answer(query);
  assert.ok(ask(one, query) !== undefined);
  for (let bit = 0; bit < 32; bit++) {
    assert.equal(ask(two, query, {}, 2 ** bit), undefined);
    assert.ok(ask(one, query, {}, 2 ** bit) !== undefined);
  }
  for (let mark = 0; mark < 4096; mark++) assert.equal(ask(two, query, {}, mark), undefined);
  const packet = aPacket({ payload: query });
  const passed = runProgram(one.program, packet, into, OWN_MARK);
  assert.deepEqual(passed, packet, "the process's own queries to Docker's resolver");
});

test("what is forgotten is gone at once, and what is told again is new", (t) => {
  const space = openSpace(t);
  const query = aQuery({ name: "web", type: TYPE.A });
  const at = (ipv4: string): Process => new Process(aView([aNetwork({ members: [{ names: ["web"], ipv4 }] })]), space);
  at("172.20.0.2").answer(query);
  at("172.20.0.3").answer(query);
  assert.equal((ask(space, query) as Buffer).at(-1), 2, "an answer does not change while it is valid");
  kernel.forgetAll();
  assert.equal(ask(space, query), undefined);
  at("172.20.0.3").answer(query);
  assert.equal((ask(space, query) as Buffer).at(-1), 3);
  assert.equal((ask(space, query) as Buffer).readUInt32BE(query.length + 6), TTL_SECONDS);
});

test("addresses that are to be in order stay in order", (t) => {
  const space = openSpace(t);
  const named = { v4: Buffer.of(172, 20, 0, 1, 172, 20, 0, 2, 172, 20, 0, 3), v6: Buffer.alloc(0), isSorted: true };
  const sortedNames: VisibleNames = {
    places: [],
    kind: LOCAL_SOURCE.network,
    find: (_, search) => search.found(named, true),
    pointer: () => undefined,
  };
  const query = aQuery({ name: "sorted", type: TYPE.A });
  const expected = new Process({ ...aView(), names: [sortedNames] }, space).answer(query);
  for (let i = 0; i < 50; i++) assert.deepEqual(ask(space, query), expected);
});

test("an answer that ends by itself is not repeated", (t) => {
  const space = openSpace(t);
  const named = { v4: Buffer.of(172, 20, 0, 9), v6: Buffer.alloc(0) };
  const timed: VisibleNames = {
    places: [],
    kind: LOCAL_SOURCE.network,
    find: (_, search) => search.found(named, true, true),
    pointer: () => undefined,
  };
  const process = new Process({ ...aView(), names: [timed] }, space);
  for (const type of [TYPE.A, TYPE.AAAA]) assert.ok(process.answer(aQuery({ name: "gone", type })) !== undefined);
  assert.equal(space.size, 0);
});

test("a namespace has its share, then the process answers; what is forgotten makes room", (t) => {
  const small = new KernelAnswers({
    spaces: 2,
    answers: { whole: 6, each: 4, always: 2 },
    brief: KERNEL_ANSWER_LIMITS.brief,
  });
  t.after(() => small.close());
  const [greedy, modest] = [small.open() as KernelSpace, small.open() as KernelSpace];
  assert.equal(small.open(), undefined, "all spaces are taken");
  t.after(() => [greedy, modest].forEach((space) => space.close()));
  const members = Array.from({ length: 9 }, (_, index) => ({ names: [`c${index}`], ipv4: `172.20.0.${index + 1}` }));
  const view = aView([aNetwork({ members })]);
  const queries = members.map(({ names: [name] }) => aQuery({ name: name as string, type: TYPE.A }));
  for (const space of [greedy, modest]) {
    space.serve(PORT);
    for (const query of queries) new Process(view, space).answer(query);
  }
  assert.deepEqual([greedy.size, modest.size], [4, 2]);
  assert.deepEqual(
    queries.map((query) => ask(modest, query) !== undefined),
    queries.map((_, index) => index < 2),
  );
  greedy.forget();
  for (const query of queries.toReversed()) new Process(view, greedy).answer(query);
  assert.equal(greedy.size, 4);
  assert.ok(ask(greedy, queries.at(-1) as Buffer) !== undefined);
});
