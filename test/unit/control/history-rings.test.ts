// Proves that samples are what was counted in between, also when containers come and go or settings change, and that rings and
// servers are bounded, the host's servers first.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS } from "../../../src/base/limits.ts";
import { HistoryRings } from "../../../src/control/history/history-rings.ts";

type Ports = ConstructorParameters<typeof HistoryRings>[0];

/** A server as a pool has it. */
function aServer(address: string): { up: boolean; health: object; server: object } {
  const server = { address, port: 53, from: "host" };
  const counters = { queries: 0 };
  const each = { up: true, server, health: { rttMs: undefined, counters, checkIsDown: () => !each.up } };
  return each;
}

class Fixture {
  readonly attached = new Map<string, { counters: Record<string, number>; collect: () => void }>();
  servers: ReturnType<typeof aServer>[] = [];
  readonly rings = new HistoryRings({
    containers: {
      facts: { keys: () => this.attached.keys(), values: () => [] },
      clients: { of: (id: string) => this.attached.get(id) },
    },
    resolver: () => ({
      upstreamState: { pool: { hostNameservers: this.servers, nameserversOf: () => [] }, now: () => 0 },
    }),
  } as unknown as Ports);

  attach(id: string, counters: Record<string, number> = {}): Record<string, number> {
    const live = { queries: 0, local: 0, nxdomain: 0, ...counters };
    this.attached.set(id, { counters: live, collect: () => undefined });
    return live;
  }
}

test("a sample is what containers have counted since the last one, whoever comes and goes", async () => {
  const fixture = new Fixture();
  const web = fixture.attach("web");
  web["queries"] = 10;
  web["local"] = 4;
  await fixture.rings.sample();
  web["queries"] = 15;
  fixture.attach("db", { queries: 3, nxdomain: 2 });
  await fixture.rings.sample();
  fixture.attached.delete("web");
  await fixture.rings.sample();
  fixture.attach("web", { queries: 1 });
  await fixture.rings.sample();
  const { rates, until, everyMs } = fixture.rings.report();
  assert.deepEqual(rates.queries, [10, 8, 0, 1]);
  assert.deepEqual(rates.local, [4, 0, 0, 0]);
  assert.deepEqual(rates.nxdomain, [0, 2, 0, 0]);
  const { minutes } = fixture.rings.report();
  const sum = (counts: readonly number[]): number => counts.reduce((total, each) => total + each, 0);
  assert.deepEqual([sum(minutes.queries), sum(minutes.failures)], [19, 2]);
  assert.equal(everyMs, LIMITS.historyEveryMs);
  assert.ok(Date.parse(until ?? "") <= Date.now());
});

test("before the first sample there is nothing", () => {
  const report = new Fixture().rings.report();
  assert.deepEqual([report.until, report.rates.queries, report.servers], [null, [], []]);
});

test("a server has its state, time and queries; new counters count from 0; one that is gone for all samples is dropped", async () => {
  const fixture = new Fixture();
  await fixture.rings.sample();
  const server = aServer("10.0.0.1");
  fixture.servers = [server];
  Object.assign(server.health, { rttMs: 1.234, counters: { queries: 5 } });
  await fixture.rings.sample();
  server.up = false;
  await fixture.rings.sample();
  Object.assign(server.health, { counters: { queries: 2 } });
  await fixture.rings.sample();
  const [found = assert.fail()] = fixture.rings.report().servers;
  assert.equal(found.server, "host(10.0.0.1)");
  assert.deepEqual(found.states, [null, "up", "down", "down"]);
  assert.deepEqual(found.rttMs, [null, 1.23, 1.23, 1.23]);
  assert.deepEqual(found.queries, [0, 5, 0, 2]);
  fixture.servers = [];
  for (let i = 0; i < LIMITS.historySamples; i++) await fixture.rings.sample();
  assert.deepEqual(fixture.rings.report().servers, []);
});

test("rings and servers are bounded", async () => {
  const fixture = new Fixture();
  const many = LIMITS.historyServers + 5;
  fixture.servers = Array.from({ length: many }, (_, at) => aServer(`10.0.${at >> 8}.${at & 255}`));
  for (let i = 0; i < LIMITS.historySamples + 7; i++) await fixture.rings.sample();
  const { rates, servers, omitted } = fixture.rings.report();
  assert.deepEqual([rates.queries.length, servers.length, omitted], [LIMITS.historySamples, LIMITS.historyServers, 5]);
  assert.ok(servers.every(({ states, rttMs }) => states.length === LIMITS.historySamples && rttMs.length === 60));
});
