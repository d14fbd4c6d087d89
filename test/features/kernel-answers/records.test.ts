// Proves that queries which the kernel answers are seen like those of the process: in the histories with names, addresses
// and sources, as the settings allow; counted by kind; and where there were too many for a record, counted as such.

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";

import { KERNEL_ANSWER_LIMITS } from "../../../src/features/kernel-answers/limits.ts";
import { TYPE } from "../../../src/base/dns/record-type.ts";
import type { AnswerKind } from "../../../src/features/kernel-answers/kernel/kernel-answer.ts";
import type { QueryNames } from "../../../src/base/model/query-record.ts";
import { kernelProbeAnswer, kernelProbeQuery } from "../../../src/features/kernel-answers/namespace-answers.ts";
import { LOCAL_SOURCE } from "../../../src/base/model/local-source.ts";
import { QueryReader } from "../../../src/control/history/query-reader.ts";
import { KernelAnswers } from "../../../src/features/kernel-answers/kernel/kernel-answers.ts";
import type { KernelSpace } from "../../../src/features/kernel-answers/kernel/kernel-space.ts";
import { RECORDS } from "../../../src/features/kernel-answers/kernel/layout.ts";
import { QueryHistories } from "../../../src/query/history/query-histories.ts";
import { Meter } from "../../../src/query/record/meter.ts";
import { PROCESS_PORT, Process, kernelReply } from "./kernel-program.ts";
import { aNetwork, aQuery, aView } from "../../support/scripted/builders.ts";

const CONTAINER = "web-id";
const VIEW = aView([
  aNetwork({
    name: "one",
    members: [
      { names: ["web"], ipv4: "172.20.0.2", ipv6: "fd11::2" },
      { names: ["db"], ipv4: "172.20.0.3" },
    ],
  }),
]);
const [WEB, WEB6, DB, DB6] = [
  aQuery({ name: "web", type: TYPE.A }),
  aQuery({ name: "web", type: TYPE.AAAA }),
  aQuery({ name: "DB.one", type: TYPE.A }),
  aQuery({ name: "db.one", type: TYPE.AAAA }),
];

interface Recorded {
  readonly kernel: KernelAnswers;
  readonly space: KernelSpace;
  readonly process: Process;
  readonly histories: QueryHistories;
  readonly reader: QueryReader;
}

// A container whose queries the kernel answers, and those who read them.
function recorded(t: TestContext, names: QueryNames = "full"): Recorded {
  const kernel = new KernelAnswers({ ...KERNEL_ANSWER_LIMITS, spaces: 2 });
  t.after(() => kernel.close());
  const space = kernel.open() as KernelSpace;
  space.serve(PROCESS_PORT);
  const histories = new QueryHistories(names);
  const process = new Process(VIEW, space, undefined, histories.open(CONTAINER));
  return { kernel, space, process, histories, reader: new QueryReader(histories, () => "web") };
}

function byKernel(space: KernelSpace, query: Buffer, times = 1): void {
  for (let time = 0; time < times; time++) assert.ok(kernelReply(space, query) !== undefined);
}

async function queriesOf(reader: QueryReader): Promise<string[]> {
  const { queries } = await reader.read({}, 1_000);
  return queries.map(({ name, type, addresses, source }) => [name, type, ...addresses, source].join(" "));
}

test("a query that the kernel answers is in the history as one that the process answers", async (t) => {
  const { space, process, reader } = recorded(t);
  for (const query of [WEB, WEB6, DB, DB6]) process.answer(query);
  const byProcess = await queriesOf(reader);
  const before = performance.now();
  for (const query of [WEB, WEB6, DB, DB6]) byKernel(space, query);
  const both = await queriesOf(reader);
  assert.deepEqual(
    both,
    [...byProcess, ...byProcess].map((line, index) =>
      index < 4 ? line : line.toLowerCase().replace(/ (aaaa|a) /, (type) => type.toUpperCase()),
    ),
  );
  assert.deepEqual(both.slice(4), [
    "web A 172.20.0.2 network",
    "web AAAA fd11::2 network",
    "db.one A 172.20.0.3 network",
    "db.one AAAA network",
  ]);
  const { queries } = await reader.read({}, 1);
  assert.deepEqual([queries[0]?.rcode, queries[0]?.answers, queries[0]?.transport], ["NOERROR", 0, "udp"]);
  const atMs = Date.parse(queries[0]?.time ?? "") - (Date.now() - performance.now());
  // The clock of the program has ticks of up to 10 ms.
  assert.ok(atMs > before - 15 && atMs < performance.now() + 5, `${atMs} is after ${before}`);
});

test("followers get each query once; of too many, the last ones and the number of the others", async (t) => {
  const { space, process, reader } = recorded(t);
  process.answer(WEB);
  byKernel(space, WEB, RECORDS + 40);
  const take = reader.watch();
  assert.deepEqual(take(), [], "from now on");
  byKernel(space, WEB, 5);
  assert.equal(take().length, 5);
  assert.deepEqual(take(), []);
  const { last } = await reader.read({ containerId: CONTAINER }, 0);
  byKernel(space, WEB, RECORDS + 40);
  const reports = take();
  assert.deepEqual([reports[0], reports.length], [{ container: "web", missed: 40 }, RECORDS + 1]);
  assert.deepEqual(take(), [], "what was missed is reported once");
  const { queries, missed } = await reader.read({ containerId: CONTAINER }, 1_000, last ?? 0);
  assert.deepEqual([queries.length, missed], [RECORDS, 40]);
  assert.equal(process.counters["queries"], 1 + 2 * (RECORDS + 40) + 5, "all are counted");
});

test("queries are still read after their names have changed, also from entries that are used again", async (t) => {
  const { kernel, space, process, reader } = recorded(t);
  process.answer(WEB);
  byKernel(space, WEB);
  kernel.forgetAll();
  process.answer(DB);
  byKernel(space, DB);
  kernel.forgetAll();
  // The program's clock has ticks of a few milliseconds, so the order is not exact.
  assert.deepEqual((await queriesOf(reader)).toSorted(), [
    "DB.one A 172.20.0.3 network",
    "db.one A 172.20.0.3 network",
    "web A 172.20.0.2 network",
    "web A 172.20.0.2 network",
  ]);
});

test("names are hidden, and nothing is recorded, where the settings say so", async (t) => {
  const { space, process, histories, reader } = recorded(t, "hidden");
  process.answer(WEB);
  byKernel(space, WEB);
  assert.deepEqual(await queriesOf(reader), [" A network", " A network"]);
  histories.setNames("off");
  assert.equal(space.isRecording, false);
  byKernel(space, WEB);
  histories.setNames("full");
  assert.deepEqual(await queriesOf(reader), [], "not what came while recording was off");
  byKernel(space, WEB);
  assert.deepEqual(await queriesOf(reader), ["web A 172.20.0.2 network"]);
  histories.setNames("hidden");
  assert.deepEqual(await queriesOf(reader), [], "names of before are dropped");
});

test("the history of a container that has ended has its last queries", async (t) => {
  const { space, process, histories, reader } = recorded(t);
  process.answer(WEB);
  byKernel(space, WEB, 3);
  for (const history of [...histories.histories()]) {
    byKernel(space, WEB);
    histories.close(history);
  }
  space.close();
  assert.equal((await queriesOf(reader)).length, 5);
});

test("the next container in the same space sees nothing of the one before", async (t) => {
  const { kernel, space, process, histories } = recorded(t);
  process.answer(WEB);
  byKernel(space, WEB, RECORDS);
  space.close();
  const next = kernel.open() as KernelSpace;
  next.serve(PROCESS_PORT);
  const history = histories.open("next-id");
  const its = new Process(VIEW, next, undefined, history);
  its.answer(DB);
  byKernel(next, DB, 2);
  const names = [...histories.histories("next-id")].flatMap((one) => [...one.since(-1)].map(({ name }) => name));
  assert.deepEqual(names, ["DB.one", "db.one", "db.one"]);
});

test("answers are counted by type, code and source, and our own probes are not", (t) => {
  const { kernel, space, process, histories } = recorded(t);
  for (const query of [WEB, WEB6, DB6]) process.answer(query);
  byKernel(space, WEB, 3);
  byKernel(space, WEB6, 2);
  byKernel(space, DB6);
  space.remember(kernelProbeAnswer("aa", Buffer.of(1, 2, 3, 4)));
  byKernel(space, kernelProbeQuery("aa", 7));
  const taken: [AnswerKind, number][] = [];
  kernel.kinds.takeCounts((kind, count) => taken.push([kind, count]));
  const source = LOCAL_SOURCE.network;
  assert.deepEqual(taken, [
    [{ type: TYPE.A, rcode: 0, source }, 3],
    [{ type: TYPE.AAAA, rcode: 0, source }, 3],
  ]);
  const recordedNames = [...histories.histories()].flatMap((one) => [...one.since(-1)]);
  assert.equal(recordedNames.length, 3 + 6, "those of the process, and those of the kernel");
  const meter = new Meter();
  meter.repeated = kernel.kinds;
  byKernel(space, WEB, 2);
  meter.collect();
  meter.collect();
  assert.deepEqual([meter.responses(0), meter.localAnswers(source)], [2, 2]);
});

test("queries of dns11's own are left to the process, which does not count them", (t) => {
  const { space, process, histories } = recorded(t);
  process.answer(WEB);
  const [own, other] = [{ sourcePort: 50_001 }, { sourcePort: 50_002 }];
  process.announce(own.sourcePort);
  assert.equal(kernelReply(space, WEB, own), undefined);
  assert.ok(kernelReply(space, WEB, other) !== undefined);
  assert.equal(kernelReply(space, WEB, own), undefined, "until the process has it");
  assert.equal(process.takeOwn(own.sourcePort), true);
  assert.ok(kernelReply(space, WEB, own) !== undefined);
  assert.equal(process.counters["kernel"], 2);
  assert.equal([...histories.histories()].flatMap((one) => [...one.since(-1)]).length, 3);
});
