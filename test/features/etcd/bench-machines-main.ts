// Simulated machines in one process: each publishes its containers to etcd, one of them reads what all others publish. Some
// containers change all the time; how long a change takes from one machine to the other is printed as JSON.
// Arguments: endpoint, machines, containers of each, changes a second, seconds.

import { setTimeout as sleep } from "node:timers/promises";

import { MACHINE_KEY, RemoteMembers, keyOf, valueOf } from "../../../src/features/etcd/machines.ts";
import { Gateway } from "../../../src/features/etcd/client/gateway.ts";
import { Mirror } from "../../../src/features/etcd/client/mirror.ts";
import { type StoredKey, encoded } from "../../../src/features/etcd/client/messages.ts";
import { Publisher, type WantedKeys } from "../../../src/features/etcd/client/publisher.ts";
import { quantile } from "../../bench/figures.ts";

const [endpoint = "", ...numbers] = process.argv.slice(2);
const [machineCount = 0, perMachine = 0, perSecond = 0, seconds = 0] = numbers.map(Number);
const ASKED = 500;
const options = { endpoints: [endpoint], ca: undefined, user: undefined };
const stop = new AbortController();

class Machine implements WantedKeys {
  readonly wanted = new Map<string, string>();
  readonly isComplete = true;
  readonly addresses = ["192.0.2.1"];
  readonly publisher: Publisher;
  readonly name: string;
  onChange: WantedKeys["onChange"] = () => {};

  constructor(index: number) {
    this.name = `m${index}`;
    for (let at = 0; at < perMachine; at++) this.set(at, 80);
    this.publisher = new Publisher({
      gateway: new Gateway(options),
      root: `${remote.prefix}${this.name}/`,
      ownerKey: MACHINE_KEY,
      machine: this.name,
      instance: this.name,
      run: "bench",
      leaseSeconds: 60,
      keys: this,
      onState: (fault) => fault && console.error(this.name, fault.message),
    });
    void this.publisher.run(stop.signal);
  }

  setConnectedAddress(): void {}

  // A container that has started under another address, as others are to know it. Returns its key.
  set(at: number, port: number): string {
    const member = {
      project: "shop",
      service: `web${at}`,
      id: at.toString(16).padStart(12, "0"),
      isReady: true,
      hosts: ["1"],
      ports: [{ name: "http", protocol: "tcp" as const, number: port }],
      reach: "machine" as const,
      inside: undefined,
      v4: [Uint8Array.of(192, 0, 2, 1)],
      v6: [],
    };
    const key = keyOf(member);
    this.wanted.set(key, valueOf(member, this.name, 5));
    this.onChange(key);
    return key;
  }
}

const remote = new RemoteMembers({
  prefix: "/skydns",
  zone: "cluster.test",
  machine: "reader",
  isNearestFirst: false,
  staleSecondsMax: 3600,
});
const waiting = new Map<string, number>();
const latencies: number[] = [];
const readerPut = remote.put.bind(remote);
remote.put = (stored: StoredKey): void => {
  readerPut(stored);
  const name = `${stored.key} ${/"port":(\d+)/.exec(stored.value?.toString() ?? "")?.[1] ?? ""}`;
  const since = waiting.get(name);
  if (since === undefined) return;
  waiting.delete(name);
  latencies.push(performance.now() - since);
};

const startMs = performance.now();
const cpuBefore = process.cpuUsage();
const machines = Array.from({ length: machineCount }, (_, index) => new Machine(index));
while (machines.some(({ publisher }) => !publisher.isHeld || publisher.sizes.written < perMachine)) await sleep(50);
const filledMs = performance.now() - startMs;
const filledCpu = process.cpuUsage(cpuBefore);

// Changes are followed.
let isOpen = false;
const heapBefore = heap();
const listMs = performance.now();
const mirror = new Mirror({
  gateway: new Gateway(options),
  prefix: remote.prefix,
  keys: remote,
  onState: (fault) => {
    isOpen = fault === undefined;
    remote.setCurrent(isOpen);
  },
});
void mirror.run(stop.signal);
while (!remote.isUsable || remote.report.members < machineCount * perMachine) await sleep(5);
const listedMs = performance.now() - listMs;
const readerBytes = heap() - heapBefore;

while (!isOpen) await sleep(5);

const churnCpu = process.cpuUsage();
const churnMs = performance.now();
const changes = Math.round(perSecond * seconds);
for (let change = 0; change < changes; change++) {
  await sleep(Math.max(0, churnMs + (change * 1000) / perSecond - performance.now()));
  const machine = machines[change % machineCount] as Machine;
  const port = 1000 + change;
  const at = change % perMachine;
  const key = `svc/shop/web${at}/${at.toString(16).padStart(12, "0")}`;
  waiting.set(`${remote.prefix}${machine.name}/${key} ${port}`, performance.now());
  machine.set(at, port);
}
for (let left = 100; left > 0 && waiting.size > 0; left--) await sleep(50);
const took = process.cpuUsage(churnCpu);
const churnedMs = performance.now() - churnMs;
const transactions = machines.reduce((sum, { publisher }) => sum + publisher.counts.transactions, 0);

// What asks etcd for each query: one range request for the keys of a service.
const gateway = new Gateway(options);
const asked: number[] = [];
for (let query = 0; query < ASKED; query++) {
  const key = `${remote.prefix}m${query % machineCount}/svc/shop/web0/`;
  const since = performance.now();
  await gateway.call("/v3/kv/range", { key: encoded(key), range_end: encoded(`${key.slice(0, -1)}0`) });
  asked.push(performance.now() - since);
}
stop.abort();
const ms = (of: { readonly user: number; readonly system: number }): number => (of.user + of.system) / 1000;
console.log(
  JSON.stringify({
    filledMs,
    filledCpuMs: ms(filledCpu),
    listedMs,
    readerMiB: readerBytes / 2 ** 20,
    changes: latencies.length,
    missed: waiting.size,
    p50Ms: quantile(latencies, 0.5),
    p99Ms: quantile(latencies, 0.99),
    churnedMs,
    churnCpuMs: ms(took),
    transactions,
    askedP50Ms: quantile(asked, 0.5),
    askedP99Ms: quantile(asked, 0.99),
  }),
);
process.exit(0);

function heap(): number {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}
