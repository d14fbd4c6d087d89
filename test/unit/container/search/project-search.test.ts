// Which containers get the search list of their project, and what is said to those that ask for it and get none.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LABEL_DEFAULTS } from "../../../../src/base/model/label-policy.ts";
import { projectSearch } from "../../../../src/container/search/project-search.ts";
import { aContainer } from "../../../support/scripted/builders.ts";

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
