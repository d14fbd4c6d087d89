// Services with very many endpoints: what one query may visit of them is bounded, whatever they are and whatever is asked.

import assert from "node:assert/strict";
import { test } from "node:test";

import { DnsZone } from "../../../src/container/names/source/dns-zone.ts";
import { KUBERNETES_LIMITS } from "../../../src/features/kubernetes/limits.ts";
import { ClusterLookup } from "../../../src/features/kubernetes/names.ts";
import { readService, readSlice } from "../../../src/features/kubernetes/objects.ts";
import { addressKey } from "../../../src/features/kubernetes/tables.ts";
import { ServiceTable } from "../../../src/features/kubernetes/tables.ts";
import { SliceTable } from "../../../src/features/kubernetes/tables.ts";
import { headless, slice } from "./cluster-objects.ts";
import { ClusterWorld } from "./clustered.ts";

const SLICES = 40;
const ENDPOINTS = 100;
const ALL = SLICES * ENDPOINTS;
// Of each endpoint that is visited a lookup reads some properties.
const READS = 3;

type Endpoint = Parameters<typeof slice>[1]["endpoints"][number];

const address = (n: number): string => `10.9.${n >> 8}.${n & 255}`;
const bytes = (n: number): Uint8Array => Uint8Array.of(10, 9, n >> 8, n & 255);

// A headless service, and the number of properties that were read of its slices and endpoints.
class CountedService {
  readonly lookup: ClusterLookup;
  #reads = 0;

  constructor(endpointOf: (n: number) => Endpoint, more: object = {}) {
    const [services, slices] = [new ServiceTable(), new SliceTable()];
    services.put(readService(headless("many.default", [], more)));
    for (let at = 0; at < SLICES; at++) {
      const endpoints = Array.from({ length: ENDPOINTS }, (_, n) => endpointOf(at * ENDPOINTS + n));
      const read = readSlice(slice("many.default", { endpoints, slice: `s${at}` })) ?? assert.fail();
      const all = read.endpoints.map((each) => this.#counted(each));
      slices.put(this.#counted({ ...read, endpoints: all, ready: all.filter(({ isReady }) => isReady) }));
    }
    this.lookup = new ClusterLookup(new DnsZone("cluster.local"), { services, slices });
  }

  // Whether the name exists.
  has(...path: string[]): boolean {
    this.#reads = 0;
    return this.lookup.find(path, { origin: Uint8Array.of(0), soa: Uint8Array.of(0) }) !== undefined;
  }

  hasPointer(n: number): boolean {
    this.#reads = 0;
    return this.lookup.pointer(addressKey(bytes(n))) !== undefined;
  }

  assertReads(max: number): void {
    assert.ok(this.#reads <= max, `${this.#reads} properties were read, not ${max}`);
  }

  #counted<T extends object>(object: T): T {
    return new Proxy(object, {
      get: (target, key): unknown => {
        this.#reads++;
        return Reflect.get(target, key);
      },
    });
  }
}

test("a host name below a service leads to its endpoints: no other is visited", () => {
  const many = new CountedService((n) => ({ addresses: [address(n)] }));
  assert.equal(many.has("svc", "default", "many", "nosuch"), false);
  many.assertReads(0);
  assert.equal(many.has("svc", "default", "many", "10-9-15-159"), true);
  many.assertReads(READS);
  assert.equal(many.has("svc", "default", "many"), true);
  many.assertReads(READS * KUBERNETES_LIMITS.answerRecords);
  assert.equal(many.hasPointer(ALL - 1), true);
  many.assertReads(READS);
});

test("endpoints that are not ready hide none that is, and are not visited", () => {
  const many = new CountedService((n) => ({ addresses: [address(n)], isReady: n === ALL - 1 }));
  for (const kind of ["svc", "endpoints"]) {
    assert.equal(many.has(kind, "default", "many"), true, kind);
    many.assertReads(2 * READS);
  }
  const none = new CountedService((n) => ({ addresses: [address(n)], isReady: false }));
  for (const path of [["svc"], ["endpoints"], ["svc", "_tcp"], ["svc", "_tcp", "_web"]]) {
    const [kind = "", ...below] = path;
    assert.equal(none.has(kind, "default", "many", ...below), false, path.join());
    none.assertReads(0);
  }
  const eager = new CountedService((n) => ({ addresses: [address(n)], isReady: false }), {
    publishNotReadyAddresses: true,
  });
  assert.equal(eager.has("svc", "default", "many"), true);
  eager.assertReads(READS * KUBERNETES_LIMITS.answerRecords);
});

test("of the endpoints with one host name, or with one address, so many are visited", () => {
  const same = new CountedService(() => ({ addresses: [address(1)], hostname: "same", isReady: false }));
  assert.equal(same.has("svc", "default", "many", "same"), false);
  same.assertReads(READS * KUBERNETES_LIMITS.visits);
  assert.equal(same.hasPointer(1), false);
  same.assertReads(READS * KUBERNETES_LIMITS.visits);
  const ready = new CountedService((n) => ({ addresses: [address(n)], hostname: "same" }));
  assert.equal(ready.has("svc", "default", "many", "same"), true);
  ready.assertReads(READS * KUBERNETES_LIMITS.visits);
});

test("host names and addresses follow the changes of their slices", () => {
  const world = new ClusterWorld([headless("web.default"), headless("api.default")]);
  const put = (own: string, hostname: string, at: number, place = "web.default"): void =>
    world.put(slice(place, { endpoints: [{ addresses: [address(at)], hostname }], slice: own }));
  const ask = (host: string): unknown => world.ask(`${host}.default.svc.cluster.local`);
  put("a", "one", 1);
  put("b", "one", 2);
  put("c", "one", 3, "api.default");
  assert.deepEqual(ask("one.web"), [0, "A 10.9.0.1", "A 10.9.0.2"]);
  assert.deepEqual(ask("one.api"), [0, "A 10.9.0.3"]);
  put("a", "two", 1);
  assert.deepEqual(
    [ask("one.web"), ask("two.web")],
    [
      [0, "A 10.9.0.2"],
      [0, "A 10.9.0.1"],
    ],
  );
  assert.deepEqual(world.ask("1.0.9.10.in-addr.arpa", "PTR"), [0, "PTR two.web.default.svc.cluster.local"]);
  put("b", "two", 1);
  world.remove(slice("web.default", { endpoints: [], slice: "a" }));
  assert.deepEqual([ask("one.web"), ask("two.web")], [[3], [0, "A 10.9.0.1"]]);
  assert.deepEqual(world.ask("1.0.9.10.in-addr.arpa", "PTR"), [0, "PTR two.web.default.svc.cluster.local"]);
  assert.deepEqual(world.ask("2.0.9.10.in-addr.arpa", "PTR"), ["forwarded"]);
});
