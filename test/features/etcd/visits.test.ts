// Names with very many keys below them, or that lead to very many: how many keys one query visits is bounded.

import assert from "node:assert/strict";
import { test } from "node:test";

import { TYPE } from "../../../src/base/dns/record-type.ts";
import { ETCD_LIMITS } from "../../../src/features/etcd/limits.ts";
import type { EtcdQuirk } from "../../../src/features/etcd/feature.ts";
import { type RecordNode, RecordTree } from "../../../src/features/etcd/records.ts";
import type { StoredAnswer } from "../../../src/features/etcd/lookup.ts";
import { StoreLookup } from "../../../src/features/etcd/lookup.ts";
import { readRecord } from "../../../src/features/etcd/records.ts";

const MANY = 5 * ETCD_LIMITS.visits;

// Records of a zone, and the number of keys that were visited below others.
class CountedStore {
  readonly #tree = new RecordTree();
  visits = 0;

  constructor(count: number, recordOf: (n: number) => readonly [name: string, record: object]) {
    for (let n = 0; n < count; n++) {
      const [name, record] = recordOf(n);
      const labels = `${name}.shop.test`.split(".").toReversed();
      this.#tree.put(labels, readRecord(Buffer.from(JSON.stringify(record))), undefined);
    }
    this.#countBelow(this.#tree.root);
  }

  find(name: string, quirks: readonly EtcdQuirk[] = []): StoredAnswer | undefined {
    this.visits = 0;
    const lookup = new StoreLookup({ tree: this.#tree, quirks, leaseSeconds: () => undefined, isStale: false });
    const authority = { origin: Uint8Array.of(0), soa: Uint8Array.of(0) };
    return lookup.find(`${name}.shop.test`.split(".").toReversed(), { path: ["test", "shop"], authority });
  }

  #countBelow({ children }: RecordNode): void {
    if (children === undefined) return;
    const nodes = [...children.values()];
    for (const node of nodes) this.#countBelow(node);
    const note = (): number => this.visits++;
    children.values = function* values(): MapIterator<RecordNode> {
      for (const node of nodes) {
        note();
        yield node;
      }
      return undefined;
    };
  }
}

const addressOf = (n: number): string => `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`;

test("of the keys below a name, or below all names of a wildcard, so many are visited", () => {
  const names = new CountedStore(MANY, (n) => [`x.n${n}.a`, { host: addressOf(n) }]);
  assert.equal(names.find("a")?.sets.size, 0, "they are names of their own");
  assert.ok(names.visits <= ETCD_LIMITS.visits + 1, `${names.visits}`);
  const members = new CountedStore(MANY, (n) => [`x${n}.n${n % 100}`, { host: addressOf(n) }]);
  for (const quirks of [[], ["subtree"]] as const) {
    assert.equal(members.find("*", quirks)?.sets.get(TYPE.A)?.length, ETCD_LIMITS.answerRecords);
    // The names themselves, and what is below them.
    assert.ok(members.visits <= 100 + ETCD_LIMITS.visits + 1, `${members.visits}`);
  }
});

test("names that a record points to share what may be visited, and the addresses of an answer are as many as its records", () => {
  const targets = 200;
  const store = new CountedStore(MANY, (n) =>
    n < targets ? [`r${n}.svc`, { host: `t${n}.shop.test` }] : [`x${n}.t${n % targets}`, { host: addressOf(n) }],
  );
  const found = store.find("svc") ?? assert.fail();
  assert.equal(found.sets.get(TYPE.A)?.length, ETCD_LIMITS.answerRecords);
  assert.ok(store.visits <= 2 * ETCD_LIMITS.visits, `${store.visits}`);
  store.visits = 0;
  assert.ok(found.additional(TYPE.SRV).length > 0);
  assert.ok(store.visits <= ETCD_LIMITS.answerRecords + 1, `${store.visits}`);
});

test("a target with the word of a wildcard visits no more", () => {
  const any = new CountedStore(MANY, (n) =>
    n < 200 ? [`r${n}.svc`, { host: `z${n}.any.shop.test` }] : [`x.n${n}`, { host: addressOf(n) }],
  );
  const found = any.find("svc") ?? assert.fail();
  found.additional(TYPE.SRV);
  assert.ok(any.visits <= 3 * ETCD_LIMITS.visits, `${any.visits}`);
});
