// What `dns11 ps`, `explain` and `doctor` show of one container in etcd: each reason why other machines do not have it.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { Explanation } from "../../../src/api/names.ts";
import type { PublishedReport } from "../../../src/api/etcd.ts";
import type { ContainerStatus } from "../../../src/api/status.ts";
import { Fault } from "../../../src/base/lib/fault.ts";
import type { PublishedMember } from "../../../src/container/names/services/published-member.ts";
import type { Finding } from "../../../src/base/model/finding.ts";
import { publishedPlace, publishedReport } from "../../../src/features/etcd/publishing.ts";
import { columns, containerFindings, explanationLines } from "../../../src/features/etcd/report.ts";
import { machineTakenFault, reportedFault, timeoutFault } from "../../../src/features/etcd/client/faults.ts";

const ZONE = "cluster.test";
const ROOT = "/skydns/test/cluster/machine/m1/";
const KEY = "svc/shop/web/4f0c1e2d3b4a";
const MEMBER: PublishedMember = {
  project: "shop",
  service: "web",
  id: "4f0c1e2d3b4a",
  isReady: true,
  hosts: ["1", "4f0c1e2d3b4a"],
  ports: [{ name: "http", protocol: "tcp", number: 8080 }],
  reach: "ports",
  inside: undefined,
  v4: [Uint8Array.of(192, 0, 2, 7)],
  v6: [],
};
const PUBLISHED = { key: KEY, ...publishedPlace(MEMBER, ZONE, "m1") };

function publishing(isWritten: boolean, fault?: Fault): Parameters<typeof publishedReport>[2] {
  return { root: ROOT, fault, has: (key: string) => isWritten && key === KEY };
}

function containerWith(published: PublishedReport): ContainerStatus {
  return { name: "web", published } as ContainerStatus;
}

function findingsOf(published: PublishedReport): Finding[] {
  return containerFindings({ status: containerWith(published) });
}

// In the table of `dns11 ps`.
function cellOf(published: PublishedReport): unknown {
  const container = containerWith(published);
  return columns([container])[0]?.cell(container);
}

// In `dns11 explain`.
function sentenceOf(published: PublishedReport): string | undefined {
  const explained = { question: { name: "web", type: "A" }, published: [{ ...published, container: "web" }] };
  return explanationLines(explained as unknown as Explanation, true)[0]?.text;
}

test("published: its names on other machines, its key, and where it is reached", () => {
  const report = publishedReport(PUBLISHED, ZONE, publishing(true));
  assert.deepEqual(report, {
    state: "published",
    code: null,
    reason: null,
    remedy: null,
    zone: "cluster.test",
    key: ROOT + KEY,
    names: ["web.shop.svc.cluster.test", "1-m1.web.shop.svc.cluster.test"],
    addresses: ["192.0.2.7"],
    ports: ["http=8080/tcp"],
  });
  assert.equal(cellOf(report), "192.0.2.7 http=8080/tcp");
  assert.equal(sentenceOf(report), "web is published as 1-m1.web.shop.svc.cluster.test at 192.0.2.7");
  const away = publishedReport(PUBLISHED, ZONE, publishing(true, timeoutFault("http://e", 1)));
  assert.equal(away.state, "published", "what is written stays while the lease is held");
  const { names } = publishedPlace({ ...MEMBER, isReady: false }, ZONE, "m1");
  assert.deepEqual(names, ["web.shop.endpoints.cluster.test", "1-m1.web.shop.endpoints.cluster.test"]);
});

test("not written yet, or not at all: the reason of the machine", () => {
  for (const before of [undefined, publishing(false)]) {
    const report = publishedReport(PUBLISHED, ZONE, before);
    assert.deepEqual([report.state, report.code, findingsOf(report)], ["pending", null, []]);
    assert.deepEqual(cellOf(report), { text: "pending", colour: "yellow" });
  }
  const faults: readonly (readonly [Fault, string])[] = [
    [machineTakenFault("m1"), "no (name taken)"],
    [timeoutFault("http://e", 1), "no (etcd is away)"],
    [reportedFault("http://e", 7, "etcdserver: permission denied"), "no (no permission)"],
    [reportedFault("http://e", 8, "etcdserver: mvcc: database space exceeded"), "no (etcd is full)"],
    [new Fault("NEW", "something else"), "no (see dns11 doctor)"],
  ];
  for (const [fault, text] of faults) {
    const report = publishedReport(PUBLISHED, ZONE, publishing(false, fault));
    assert.deepEqual(
      [report.state, report.reason, cellOf(report)],
      ["unpublished", fault.message, { text, colour: "red" }],
    );
    assert.deepEqual(findingsOf(report), [], "a matter of the machine, which has a finding");
  }
});

test("left out: the reason of the container, a warning only where it is no choice", () => {
  for (const [code, state] of [
    ["PUBLISH_NO_PORT", "ok"],
    ["PUBLISH_OTHER_ADDRESS", "ok"],
    ["PUBLISH_NO_ADDRESS", "warning"],
    ["PUBLISH_UNNAMED_PORTS", "warning"],
    ["PUBLISH_TOO_MANY", "warning"],
  ] as const) {
    const fault = new Fault(code, "it is so", { remedy: "Do this." });
    const report = publishedReport({ leftOut: fault }, ZONE, publishing(true));
    assert.deepEqual(
      findingsOf(report).map((each) => each.state),
      [state],
      code,
    );
    assert.equal(sentenceOf(report), "web is not published: it is so. Do this.");
    assert.match((cellOf(report) as { readonly text: string }).text, /^no \((?!see)/);
  }
  const noService = publishedReport(
    { leftOut: new Fault("PUBLISH_NO_SERVICE", "it is in no service") },
    ZONE,
    undefined,
  );
  assert.deepEqual([cellOf(noService), findingsOf(noService)], ["-", []]);
});
