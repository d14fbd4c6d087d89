// Proves the host's answers from zones and declared names: never more records than the smallest UDP answer holds.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LOCAL_SOURCE } from "../../../../../src/base/model/local-source.ts";
import { UDP_BYTES_MIN } from "../../../../../src/base/dns/header.ts";
import { TYPE } from "../../../../../src/base/dns/record-type.ts";
import { FittingNames } from "../../../../../src/container/names/host-domain/fitting-answers.ts";
import { DEFAULT_BEHAVIOUR } from "../../../../../src/base/model/behaviour.ts";
import {
  RECORDS,
  NameSearch,
  type NameRecords,
  type VisibleNames,
} from "../../../../../src/base/model/visible-names.ts";
import { aQuery } from "../../../../support/scripted/builders.ts";
import { placed } from "../../../support/reply.ts";

const NAME = "web.shop.svc.cluster.local";

function sourceOf(sets: NameRecords["sets"]): VisibleNames {
  const records = { ttlSeconds: undefined, sets, alias: undefined, containers: [] };
  return {
    places: [],
    kind: LOCAL_SOURCE.declared,
    find: (_, search) => search.withRecords(records),
    pointer: () => undefined,
  };
}

function setsOf(sets: NameRecords["sets"]): NameRecords["sets"] {
  const search = new NameSearch(DEFAULT_BEHAVIOUR);
  const found = new FittingNames(sourceOf(sets)).find(placed(aQuery({ name: NAME })).question, search);
  assert.equal(found, RECORDS);
  return search.records?.sets ?? new Map();
}

function addresses(count: number): Uint8Array[] {
  return Array.from({ length: count }, (_, index) => Uint8Array.of(10, 0, index >> 8, index & 255));
}

test("few records are all answered, in their order", () => {
  const all = addresses(5);
  assert.deepEqual(setsOf(new Map([[TYPE.A, all]])).get(TYPE.A), all);
  assert.deepEqual(setsOf(new Map()).size, 0);
});

test("of many as many as fit, not always the same ones", () => {
  const many = addresses(256);
  const firsts = new Set<string>();
  for (let round = 0; round < 50; round++) {
    const some = setsOf(new Map([[TYPE.A, many]])).get(TYPE.A) ?? [];
    assert.ok(some.length > 20 && some.length * 16 + NAME.length < UDP_BYTES_MIN, String(some.length));
    firsts.add(String(some[0]));
  }
  assert.ok(firsts.size > 1);
});

test("one record that does not fit is answered, so that a name never becomes empty", () => {
  const long = [new Uint8Array(600)];
  assert.deepEqual(setsOf(new Map([[TYPE.TXT, long]])).get(TYPE.TXT), long);
});
