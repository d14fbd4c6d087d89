// Proves that counting takes a fixed amount of memory, whatever is queried, and allocates nothing.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import { Meter, PROTOCOLS, TYPE_NAMES, durationSeries, upstreamSeries } from "../../../../src/query/record/meter.ts";
import { type Outcome, STAGE } from "../../../../src/query/record/outcome.ts";
import { aQuery, aReplyTo } from "../../../support/scripted/builders.ts";
import { anOutcome } from "../../support/outcome.ts";

const REPLY = aReplyTo(aQuery());

const OTHER = TYPE_NAMES.length - 1;

test("types without their own series are counted as other, however many there are", () => {
  const meter = new Meter();
  for (let type = 0; type < 65_536; type++) meter.record(of(type, STAGE.deferred));
  const counts = TYPE_NAMES.map((_, index) => meter.requests(0, 0, index));
  assert.equal(
    counts.reduce((sum, count) => sum + count, 0),
    65_536,
  );
  assert.equal(counts[OTHER], 65_536 - OTHER);
});

test("each query of a batch is charged the duration of the batch, also beyond the size of a batch", () => {
  const meter = new Meter();
  const count = LIMITS.udpBatch + 10;
  const [byName, kept] = [of(1, STAGE.local), of(1, STAGE.cache)];
  meter.begin(false);
  for (let index = 0; index < count; index++) meter.record(index % 2 === 0 ? kept : byName);
  meter.end();
  const [local, cached] = [0, 1].map((outcome) => meter.durations.read([durationSeries(0, 0, outcome)]).atMost.at(-1));
  assert.deepEqual([local, cached], [count / 2, count / 2]);
  assert.equal(meter.responses(0), count);
});

test("servers beyond the limit are counted together", () => {
  const meter = new Meter();
  const count = LIMITS.meteredServers + 5;
  for (let index = 0; index < count; index++) {
    meter.recordReply({ address: `10.0.0.${index}`, port: 53, from: "host" }, false, 0, 1);
  }
  assert.equal(meter.servers().length, LIMITS.meteredServers + 1);
  assert.equal(meter.upstream.read([upstreamSeries(LIMITS.meteredServers, 0, 0)]).atMost.at(-1), 5);
  assert.equal(PROTOCOLS[0], "udp");
});

test("servers of containers leave room for the host's", () => {
  const meter = new Meter();
  const count = LIMITS.meteredServers * 2;
  for (let index = 0; index < count; index++) {
    meter.recordReply({ address: `10.0.0.${index}`, port: 53, from: "container" }, false, 0, 1);
  }
  assert.equal(meter.servers().length, LIMITS.meteredContainersServers + 1);
  meter.recordReply({ address: "10.1.0.1", port: 53, from: "host" }, false, 0, 1);
  const place = new Map(meter.servers()).get("host(10.1.0.1)") ?? assert.fail("the host's server has a place");
  const seen = (server: number): number | undefined =>
    meter.upstream.read([upstreamSeries(server, 0, 0)]).atMost.at(-1);
  assert.deepEqual([seen(place), seen(LIMITS.meteredServers)], [1, count - LIMITS.meteredContainersServers]);
});

test("counting allocates nothing", () => {
  const meter = new Meter();
  const cached = of(1, STAGE.cache);
  const round = (): void => {
    meter.begin(false);
    for (let index = 0; index < LIMITS.udpBatch; index++) {
      meter.record(cached);
    }
    meter.end();
  };
  for (let index = 0; index < 5_000; index++) round();
  const before = process.memoryUsage().heapUsed;
  for (let index = 0; index < 2_000; index++) round();
  const perQuery = (process.memoryUsage().heapUsed - before) / (2_000 * LIMITS.udpBatch);
  assert.ok(perQuery < 4, `${perQuery} bytes a query`);
});

function of(type: number, stage: number): Outcome {
  return anOutcome({ reply: REPLY, nameEnd: 0, type, stage });
}
