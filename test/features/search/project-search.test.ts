// Which containers get the search list of their project, and what is said to those that ask for it and get none.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LABEL_DEFAULTS } from "../../../src/base/model/name-choices.ts";
import { CONTAINER_MODE } from "../../../src/container/attach/attach-mode.ts";
import type { Decision } from "../../../src/container/attach/decision.ts";
import type { EngineCore, RunCore } from "../../../src/features/contract.ts";
import { open, projectSearch } from "../../../src/features/search/search.ts";
import { Random } from "../../fuzz/random.ts";
import { aContainer } from "../../support/scripted/builders.ts";

const ASKS = { "io.dns11.search": "project" };
const SHOP = { "com.docker.compose.project": "Shop" };
const ZONES = ["cluster.local", "docker.test"];

function searchOf(labels: Record<string, string>, zones: readonly string[] = ZONES): ReturnType<typeof projectSearch> {
  return projectSearch(aContainer({ labels }), { labels: LABEL_DEFAULTS, zones });
}

test("the list of a pod, in the first zone; the label of a project comes before Compose's", () => {
  const domains = (project: string): string[] => [`${project}.svc.cluster.local`, "svc.cluster.local", "cluster.local"];
  assert.deepEqual(searchOf({ ...ASKS, ...SHOP }), { list: { domains: domains("shop"), ndots: 5 } });
  const labels = { ...ASKS, ...SHOP, "io.dns11.project": "other" };
  assert.deepEqual(searchOf(labels), { list: { domains: domains("other"), ndots: 5 } });
});

test("who does not ask gets none, also with a word that is none", () => {
  for (const value of [undefined, "docker", "", "true", "project shop", "project\n"]) {
    const labels = value === undefined ? {} : { "io.dns11.search": value };
    const expected = value === "project\n";
    assert.equal(searchOf({ ...SHOP, ...labels }) !== undefined, expected, value);
  }
});

test("a label of an image counts only where the operator trusts images", () => {
  const fact = aContainer({ labels: SHOP, imageLabels: { labels: ASKS, source: "known" } });
  assert.equal(projectSearch(fact, { labels: LABEL_DEFAULTS, zones: ZONES }), undefined);
  assert.ok(projectSearch(fact, { labels: { ...LABEL_DEFAULTS, trustsImages: true }, zones: ZONES }) !== undefined);
});

test("without a zone, without a usable project, and with names that no resolv.conf takes, the reason is said", () => {
  const problem = (...given: Parameters<typeof searchOf>): string => {
    const found = searchOf(...given);
    return found !== undefined && "problem" in found ? found.problem : "";
  };
  assert.match(
    problem({ ...ASKS, ...SHOP }, []),
    /^label io\.dns11\.search has no effect: there is no zone: set zone$/,
  );
  assert.match(problem(ASKS), /belongs to no project: set label io\.dns11\.project/);
  for (const project of ["any", "a b", "a.b", "x\nnameserver 6.6.6.6", "é"])
    assert.match(problem({ ...ASKS, "io.dns11.project": project }), /belongs to no project/, project);
  const zone = `${"z".repeat(60)}.${"y".repeat(40)}`;
  assert.match(problem({ ...ASKS, ...SHOP }, [zone]), /more than 255 characters/);
});

const SEED = 20_261_123;
const INPUTS = 1_000;
const FRAGMENTS = [
  ..."*. . .. , \t \n # : / @ - _ %eth0 \\ \u0000 é İ shop Bank a_b c-d any 6.6.6.6".split(" "),
  "x".repeat(64),
  "x.".repeat(130),
  " ",
];

test("whatever a project is called, each domain is one word of labels", () => {
  let lists = 0;
  for (let index = 0; index < INPUTS; index++) {
    const random = new Random(SEED, index);
    const text = (): string => Array.from({ length: 1 + random.below(2) }, () => random.pick(FRAGMENTS)).join("");
    const search = searchOf({ ...ASKS, "com.docker.compose.project": text() }) ?? { problem: "" };
    if (!("list" in search)) continue;
    lists++;
    for (const domain of search.list.domains) assert.match(domain, /^[a-z0-9_.-]+$/, `input ${index}`);
  }
  assert.ok(lists > INPUTS / 20, `${lists} lists`);
});

const SERVED: Decision = { kind: "serve" };
const GUEST: Decision = { kind: "skip", code: "own-stack", reason: "" };
const OUT: Decision = { kind: "skip", code: "opted-out", reason: "" };
const WANTED = { domains: ["shop.svc.cluster.local", "svc.cluster.local", "cluster.local"], ndots: 5 };

test("it is written where nothing else writes the file, and a container for which it is not is told why", () => {
  const running = open({ settings: { labels: LABEL_DEFAULTS, zones: ZONES } } as unknown as RunCore);
  running.engine?.({ journal: { read: () => ({}) } } as unknown as EngineCore);
  const fact = aContainer({ labels: { ...ASKS, ...SHOP } });
  const node = { ...CONTAINER_MODE, keepsSearchList: "a node has its own" };
  const kept = running.attach?.(fact, SERVED, node);
  assert.equal(kept?.mode, node);
  assert.match(kept?.warning ?? "", /^label io\.dns11\.search has no effect: a node has its own$/);
  const bridged = aContainer({
    labels: fact.labels,
    nameservers: { kind: "captured", servers: ["10.0.0.1"], isNdotsSet: false, followsHost: false },
  });
  assert.match(running.attach?.(bridged, SERVED, CONTAINER_MODE)?.warning ?? "", /does not name 127\.0\.0\.11$/);
  assert.equal(running.attach?.(fact, OUT, undefined), undefined);
  assert.deepEqual(running.attach?.(fact, GUEST, undefined), { mode: undefined, warning: undefined });
  assert.deepEqual(running.searchListOf?.(fact), WANTED, "for whoever writes the file of a guest");
  const without = running.attach?.(aContainer({ labels: ASKS }), GUEST, undefined);
  assert.match(without?.warning ?? "", /belongs to no project/);
  assert.equal(running.changesFiles?.(fact), false, "nothing is decided about it");
  assert.notEqual(running.attach?.(fact, SERVED, CONTAINER_MODE)?.mode, CONTAINER_MODE);
  assert.equal(running.changesFiles?.(fact), true);
  running.remove?.(fact.id);
  assert.equal(running.changesFiles?.(fact), false);
  assert.equal(running.changesFiles?.({ ...fact, isStarting: true }), true, "its file is to be written");
  const { labels } = fact;
  assert.equal(
    running.changesFiles?.(aContainer({ imageLabels: { labels, source: "awaited" } })),
    true,
    "they may be its own",
  );
  assert.equal(running.attach?.(aContainer({ labels: SHOP }), SERVED, CONTAINER_MODE), undefined);
});
