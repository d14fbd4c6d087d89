// The publisher against an etcd in memory, with a clock and waits of the test: what it writes and when, what becomes of
// its lease, and that it goes on with what the run before has written. No step of the machine's clock is seen here.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Fault } from "../../../src/base/lib/fault.ts";
import { ETCD_LIMITS } from "../../../src/features/etcd/limits.ts";
import type { WantedKeys } from "../../../src/features/etcd/client/publisher.ts";
import { Publisher } from "../../../src/features/etcd/client/publisher.ts";
import { FakeEtcd } from "./fake-etcd.ts";

const ROOT = "/skydns/test/machine/m1/";
const LEASE_SECONDS = 30;
// Of both sides: a third of the lease.
const RENEWAL_MS = 10_000;
const HOUR_MS = 3_600_000;

class Wanted implements WantedKeys {
  wanted = new Map<string, string>();
  isComplete = true;
  readonly addresses = ["192.0.2.1"];
  onChange: WantedKeys["onChange"] = () => {};
  setConnectedAddress(): void {}

  set(key: string, value: string | undefined): void {
    if (value === undefined) this.wanted.delete(key);
    else this.wanted.set(key, value);
    this.onChange(key);
  }
}

interface Waiting {
  readonly ms: number;
  end(): void;
}

// One run of a machine's dns11. Waits end when the test lets time pass.
class Run implements AsyncDisposable {
  readonly keys = new Wanted();
  readonly states: (string | undefined)[] = [];
  readonly publisher: Publisher;
  readonly #etcd: FakeEtcd;
  readonly #waiting = new Set<Waiting & { readonly untilMs: number }>();
  readonly #stop = new AbortController();
  readonly #done: Promise<void>;

  constructor(etcd: FakeEtcd, run: string, parts: { instance?: string; leaseSeconds?: number; wanted?: object } = {}) {
    this.#etcd = etcd;
    const { instance = "engine", leaseSeconds = LEASE_SECONDS, wanted = {} } = parts;
    this.keys.wanted = new Map(Object.entries(wanted));
    this.publisher = new Publisher({
      gateway: etcd,
      root: ROOT,
      ownerKey: "host",
      machine: "m1",
      instance,
      run,
      leaseSeconds,
      keys: this.keys,
      onState: (fault) => this.states.push(fault?.code),
      now: () => etcd.nowMs,
      wait: async (ms, signal) => await this.#wait(ms, signal),
    });
    this.#done = this.publisher.run(this.#stop.signal);
  }

  // Lets time pass for etcd and for this run, in steps, and everything that is due happen.
  async pass(ms: number): Promise<void> {
    for (let left = ms; left >= 0; left -= 50) {
      this.#etcd.pass(Math.min(50, left));
      for (const each of this.#waiting) if (each.untilMs <= this.#etcd.nowMs) each.end();
      await settled();
    }
  }

  // All waits are of the test, and the server is in this process: there is nothing to wait for but the clock of both.
  async until(what: string, isSo: () => boolean): Promise<void> {
    const lastMs = this.#etcd.nowMs + HOUR_MS;
    do {
      assert.ok(this.#etcd.nowMs < lastMs, `waited in vain for ${what}`);
      await this.pass(200);
    } while (!isSo());
  }

  // As when it is killed.
  async kill(): Promise<void> {
    this.#stop.abort();
    await this.#done;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }

  async #wait(ms: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    await new Promise<void>((resolve) => {
      const waiting = {
        ms,
        untilMs: this.#etcd.nowMs + ms,
        end: () => {
          this.#waiting.delete(waiting);
          signal.removeEventListener("abort", waiting.end);
          resolve();
        },
      };
      this.#waiting.add(waiting);
      signal.addEventListener("abort", waiting.end, { once: true });
    });
  }
}

// Everything that waits for nothing but other promises is done.
async function settled(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

function writes(etcd: FakeEtcd): readonly number[] {
  return etcd.calls.filter(({ path }) => path === "/v3/kv/txn").map(({ operations }) => operations);
}

const MEMBERS = { "svc/shop/web/1": "a", "svc/shop/web/2": "b" };

function published(etcd: FakeEtcd): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(etcd.values(ROOT)).filter(([key]) => key !== "host"));
}

test("what is wanted is written under one lease; only differences are written afterwards, many in one transaction", async () => {
  const etcd = new FakeEtcd();
  await using run = new Run(etcd, "one", { wanted: MEMBERS });
  await run.until("all to be written", () => run.publisher.sizes.written === 2);
  assert.deepEqual(published(etcd), MEMBERS);
  assert.equal(new Set([...etcd.keys.values()].map(({ lease }) => lease)).size, 1);
  assert.equal(JSON.parse(etcd.keys.get(`${ROOT}host`)?.value ?? "").host, "192.0.2.1");
  assert.deepEqual(writes(etcd), [1, 2], "the owner, then both");
  for (let index = 0; index < 250; index++) run.keys.set(`svc/shop/many/${index}`, "x");
  run.keys.set("svc/shop/web/1", undefined);
  run.keys.set("svc/shop/web/2", "b");
  await run.until("the changes", () => run.publisher.sizes.pending === 0 && run.publisher.sizes.written === 251);
  assert.deepEqual(writes(etcd).slice(2), [100, 100, 51], "what is as it was is not written");
  assert.equal(etcd.keys.has(`${ROOT}svc/shop/web/1`), false);
  const before = etcd.calls.length;
  await run.pass(RENEWAL_MS * 3);
  assert.deepEqual([...new Set(etcd.calls.slice(before).map(({ path }) => path))], ["/v3/lease/keepalive"]);
});

test("fifty changes a second are at most twenty transactions a second", async () => {
  const etcd = new FakeEtcd();
  await using run = new Run(etcd, "one");
  await run.until("to be the owner", () => run.publisher.isHeld);
  const before = writes(etcd).length;
  for (let change = 0; change < 100; change++) {
    run.keys.set(`svc/shop/web/${change % 30}`, String(change));
    await run.pass(20);
  }
  await run.until("the last", () => run.publisher.sizes.pending === 0);
  const made = writes(etcd).length - before;
  assert.ok(made <= 60 && made >= 1, `${made} transactions for 100 changes in 2 seconds`);
  assert.equal(Object.keys(published(etcd)).length, 30);
});

test("the next run goes on with the lease and the keys of the one before: nothing is gone, nothing is written twice", async () => {
  const etcd = new FakeEtcd();
  const first = new Run(etcd, "one", { wanted: MEMBERS });
  await first.until("all to be written", () => first.publisher.sizes.written === 2);
  const created = [...etcd.keys].map(([key, each]) => [key, each.created]);
  await first.kill();
  await first.pass(RENEWAL_MS);
  const { lease } = etcd.keys.get(`${ROOT}host`) ?? {};
  await using second = new Run(etcd, "two");
  second.keys.isComplete = false;
  await second.pass(RENEWAL_MS * 6);
  assert.deepEqual(published(etcd), MEMBERS, "before all containers are known nothing is deleted, and the lease lasts");
  second.keys.wanted = new Map([["svc/shop/web/2", "b"]]);
  second.keys.isComplete = true;
  second.keys.onChange(undefined);
  await second.until("what is not wanted to be deleted", () => Object.keys(published(etcd)).length === 1);
  assert.deepEqual(
    [...etcd.keys].map(([key, each]) => [key, each.created]),
    created.filter(([key]) => !String(key).endsWith("web/1")),
  );
  assert.deepEqual(
    [...etcd.keys.values()].map((each) => each.lease),
    [lease, lease],
  );
  assert.equal(second.publisher.counts.writes, 1);
});

test("another duration of the lease: its keys move to a new one without a gap", async () => {
  const etcd = new FakeEtcd();
  const first = new Run(etcd, "one", { wanted: MEMBERS });
  await first.until("all to be written", () => first.publisher.sizes.written === 2);
  const created = [...etcd.keys.values()].map((each) => each.created);
  await first.kill();
  await using second = new Run(etcd, "two", { wanted: MEMBERS, leaseSeconds: 60 });
  await second.until("the new lease", () => etcd.keys.get(`${ROOT}svc/shop/web/2`)?.lease === second.publisher.lease);
  assert.deepEqual(
    [...etcd.keys.values()].map((each) => each.created),
    created,
  );
  await second.pass(LEASE_SECONDS * 2000);
  assert.deepEqual(published(etcd), MEMBERS, "the old one has ended");
});

test("a lease that has ended is noticed at the next renewal, or write, and everything is written again", async () => {
  const etcd = new FakeEtcd();
  await using run = new Run(etcd, "one", { wanted: MEMBERS });
  await run.until("all to be written", () => run.publisher.sizes.written === 2);
  etcd.revoke(run.publisher.lease ?? "");
  assert.deepEqual(published(etcd), {});
  await run.until("all to be written again", () => Object.keys(published(etcd)).length === 2);
  await run.until("the end of the first loss", () => run.states.length === 3);
  etcd.revoke(run.publisher.lease ?? "");
  run.keys.set("svc/shop/web/3", "c");
  await run.until("three", () => Object.keys(published(etcd)).length === 3);
  await run.until("the end of the second loss", () => run.states.length === 5);
  assert.equal(run.publisher.counts.losses, 2);
  assert.deepEqual(run.states, [undefined, "ETCD_LEASE_LOST", undefined, "ETCD_LEASE_LOST", undefined]);
});

test("a pause longer than the lease: not held by its own clock, before etcd says so", async () => {
  const etcd = new FakeEtcd();
  await using run = new Run(etcd, "one", { wanted: MEMBERS });
  await run.until("all to be written", () => run.publisher.sizes.written === 2);
  etcd.pass(LEASE_SECONDS * 1000 + 1);
  assert.equal(run.publisher.isHeld, false);
  assert.deepEqual(published(etcd), {});
  await run.until("all to be written again", () => run.publisher.isHeld && Object.keys(published(etcd)).length === 2);
});

test("writes that are refused are tried again with growing waits, and the lease is renewed meanwhile", async () => {
  const etcd = new FakeEtcd();
  await using run = new Run(etcd, "one", { wanted: MEMBERS });
  await run.until("all to be written", () => run.publisher.sizes.written === 2);
  etcd.failures.set("/v3/kv/txn", new Fault("ETCD_NO_SPACE", "etcd reports: database space exceeded"));
  run.keys.set("svc/shop/web/3", "c");
  const before = writes(etcd).length;
  await run.pass(LEASE_SECONDS * 3000);
  assert.ok(writes(etcd).length - before < 40, "a few attempts in 90 seconds");
  assert.deepEqual(published(etcd), MEMBERS, "what was written stays");
  assert.equal(run.publisher.fault?.code, "ETCD_NO_SPACE");
  etcd.failures.clear();
  await run.until("the change", () => Object.keys(published(etcd)).length === 3);
  await run.until("the end of the fault", () => run.publisher.fault === undefined);
});

test("two machines of one name: the second writes nothing until the first has gone", async () => {
  const etcd = new FakeEtcd();
  const first = new Run(etcd, "one", { wanted: MEMBERS });
  await first.until("all to be written", () => first.publisher.sizes.written === 2);
  await using second = new Run(etcd, "two", { instance: "another", wanted: { "svc/shop/web/9": "z" } });
  await second.until("to be refused", () => second.publisher.fault?.code === "ETCD_MACHINE_TAKEN");
  assert.deepEqual(published(etcd), MEMBERS);
  await first.kill();
  await first.publisher.withdraw(AbortSignal.timeout(1000));
  await second.until("to take the name", () => "svc/shop/web/9" in published(etcd));
  assert.deepEqual(published(etcd), { "svc/shop/web/9": "z" });
});

test("replaced by the next run, it writes no more, and withdraws nothing of that", async () => {
  const etcd = new FakeEtcd();
  await using first = new Run(etcd, "one", { wanted: MEMBERS });
  await first.until("all to be written", () => first.publisher.sizes.written === 2);
  await using second = new Run(etcd, "two", { wanted: MEMBERS });
  await second.until("the owner to be another", () => second.publisher.isHeld);
  first.keys.set("svc/shop/web/1", "late");
  await first.until("to be refused", () => first.publisher.fault?.code === "ETCD_MACHINE_TAKEN");
  await first.kill();
  await first.publisher.withdraw(AbortSignal.timeout(1000));
  assert.deepEqual(published(etcd), MEMBERS);
});

test("keys of others below its name are neither deleted nor overwritten; a changed key of its own is put right", async () => {
  const etcd = new FakeEtcd();
  etcd.put(`${ROOT}svc/shop/manual/1`, "theirs");
  await using run = new Run(etcd, "one", { wanted: MEMBERS });
  await run.until("all to be written", () => run.publisher.sizes.written === 2);
  assert.deepEqual([run.publisher.sizes.foreign, published(etcd)["svc/shop/manual/1"]], [1, "theirs"]);
  etcd.put(`${ROOT}svc/shop/web/1`, "changed");
  run.publisher.noteStored(`${ROOT}svc/shop/web/1`, "changed");
  await run.until("it to be put right", () => published(etcd)["svc/shop/web/1"] === "a");
  // Not told, it is noticed when the key is to be written.
  etcd.put(`${ROOT}svc/shop/web/2`, "changed");
  run.keys.set("svc/shop/web/2", "new");
  await run.until("the new value", () => published(etcd)["svc/shop/web/2"] === "new");
});

test("another writer that changes a key after each list has it listed with growing waits, and the key is put right after that", async () => {
  const etcd = new FakeEtcd();
  await using run = new Run(etcd, "one", { wanted: MEMBERS });
  await run.until("all to be written", () => run.publisher.sizes.written === 2);
  let times = 0;
  etcd.onListed = () => etcd.put(`${ROOT}svc/shop/web/1`, `theirs ${++times}`);
  etcd.onListed();
  run.keys.set("svc/shop/web/1", "ours");
  await run.pass(20_000);
  assert.ok(times > 2 && times < 20, `${times} changes in 20 seconds`);
  etcd.onListed = () => undefined;
  await run.until("our value", () => published(etcd)["svc/shop/web/1"] === "ours");
});

test("more keys of others below its name than are read: its own are written, until one of them is in the way", async () => {
  const etcd = new FakeEtcd();
  for (let at = 0; at < ETCD_LIMITS.ownKeys + 300; at++) etcd.put(`${ROOT}flood/${String(at).padStart(6, "0")}`, "x");
  await using run = new Run(etcd, "one", { wanted: MEMBERS });
  await run.until("all to be written", () => run.publisher.sizes.pending === 0 && "svc/shop/web/1" in published(etcd));
  const { foreign } = run.publisher.sizes;
  assert.ok(
    foreign >= ETCD_LIMITS.ownKeys && foreign <= ETCD_LIMITS.ownKeys + ETCD_LIMITS.pageKeys,
    `${foreign} are known`,
  );
  etcd.put(`${ROOT}svc/shop/web/3`, "theirs");
  run.keys.set("svc/shop/web/3", "ours");
  await run.until("to give up", () => run.publisher.fault?.code === "ETCD_FOREIGN_KEYS");
  const lists = etcd.calls.filter(({ path }) => path === "/v3/kv/range").length;
  await run.pass(20_000);
  const pages = etcd.calls.filter(({ path }) => path === "/v3/kv/range").length - lists;
  assert.ok(pages < 12 * (ETCD_LIMITS.ownKeys / ETCD_LIMITS.pageKeys), `${pages} pages in 20 seconds`);
  assert.equal(published(etcd)["svc/shop/web/3"], "theirs", "never overwritten");
});
