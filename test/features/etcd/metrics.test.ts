// The metrics of etcd: the page of the documentation lists each.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import type { EtcdReport } from "../../../src/api/etcd.ts";
import { etcdFamilies } from "../../../src/features/etcd/etcd.ts";

/** Of a dns11 that reads from etcd and publishes there, so that all families are listed. */
const ETCD: EtcdReport = {
  state: "current",
  code: null,
  reason: null,
  remedy: null,
  staleSeconds: null,
  members: [],
  zones: [],
  prefix: "",
  revision: null,
  alarms: [],
  lists: 0,
  reconnects: 0,
  records: 0,
  refused: 0,
  isCut: false,
  ignored: 0,
  skipped: 0,
  problems: [],
  publishing: {
    state: "current",
    code: null,
    reason: null,
    remedy: null,
    machine: "",
    addresses: [],
    root: "",
    lease: null,
    records: 0,
    leftOut: 0,
    written: 0,
    pending: 0,
    foreign: 0,
    transactions: 0,
    writes: 0,
    failures: 0,
    losses: 0,
  },
  machines: { machines: 0, members: 0, refused: 0, cut: [], skipped: 0, problems: [] },
};

test("docs/etcd.md lists exactly the metrics that exist", () => {
  const documented = [...readFileSync("docs/etcd.md", "utf8").matchAll(/`(dns11_[a-z_]+)`/g)].map(([, name]) => name);
  assert.deepEqual(new Set(documented), new Set(etcdFamilies(ETCD).map(({ name }) => name)));
});
