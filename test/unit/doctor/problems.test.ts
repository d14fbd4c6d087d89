// Proves that one cause is one problem, whomever it hits, and that what it explains is its symptom.

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  CHECKS,
  type CheckCode,
  type Finding,
  type FindingState,
  finding,
  findingsOf,
} from "../../../src/base/model/finding.ts";
import { problemsIn } from "../../../src/doctor/problems.ts";

function report(subject: string, ...findings: readonly Finding[]): { subject: string; findings: readonly Finding[] } {
  return { subject, findings };
}

function upstream(address: string, key = "refuses"): Finding {
  const titles = { title: `upstream {} ${key}`, titleOfMany: `upstreams {} ${key}` };
  return {
    ...finding("upstream", "problem", `${address}: ${key} in 1 ms`),
    shared: { key, ...titles, about: address },
  };
}

function problem(code: CheckCode, detail: string, remedy?: string): Finding {
  return finding(code, "problem", detail, remedy);
}

test("servers that fail alike are one problem for the host and all containers", () => {
  const dead = [upstream("10.0.0.1"), upstream("10.0.0.2")];
  const found = problemsIn([report("Docker host", ...dead), report("web", ...dead), report("api", ...dead)]);
  assert.deepEqual(
    found.map(({ title, subjects }) => [title, subjects]),
    [["upstreams 10.0.0.1, 10.0.0.2 refuses", ["Docker host", "web", "api"]]],
  );
  const other = problemsIn([report("web", ...dead, upstream("10.0.0.3", "is silent"))]);
  assert.deepEqual(
    other.map(({ title }) => title),
    ["upstreams 10.0.0.1, 10.0.0.2 refuses", "upstream 10.0.0.3 is silent"],
  );
});

test("what a firewall rule causes is its symptom, also through another symptom; the same in two containers is one", () => {
  const broken = [
    problem("attachment", "dns11 could not attach"),
    problem("foreign-rules", "a rule drops packets", "Change it."),
    problem("answers", "no reply"),
  ];
  const [only, ...others] = problemsIn([report("web", ...broken), report("api", ...broken)]);
  assert.deepEqual(others, []);
  assert.equal(only?.title, "other rules: a rule drops packets");
  assert.deepEqual(only.remedies, ["Change it."]);
  assert.deepEqual(only.symptoms, [
    { text: "resolver: dns11 could not attach", subjects: ["web", "api"] },
    { text: "query: no reply", subjects: ["web", "api"] },
  ]);
});

test("a feature says what explains its checks; without it they are problems of their own", () => {
  const checks = { pods: { title: "pods", examines: "whether pods answer", explainedBy: ["rules"] } };
  const reports = [
    report("node", problem("rules", "a rule is gone", "Repair it."), findingsOf(checks)("pods", "problem", "silent")),
  ];
  const [only, ...others] = problemsIn(reports, { ...CHECKS, ...checks });
  assert.deepEqual(others, []);
  assert.deepEqual(only?.symptoms, [{ text: "pods: silent", subjects: ["node"] }]);
  assert.equal(problemsIn(reports).length, 2);
});

test("a warning explains nothing, and what nothing explains is a problem of its own", () => {
  const found = problemsIn([
    report("web", problem("answers", "no reply"), finding("foreign-rules", "warning", "a rule")),
  ]);
  assert.deepEqual(
    found.map(({ state, title }) => [state, title]),
    [
      ["problem", "query: no reply"],
      ["warning", "other rules: a rule"],
    ],
  );
});

test("names fail because of servers only if that is their cause", () => {
  const name = (key: string): Finding => ({
    ...problem("failing-names", "fails"),
    shared: { key, cause: key, title: "{} does not resolve", about: '"db"', symptom: "3 queries" },
  });
  const titles = (key: string): string[] =>
    problemsIn([report("web", upstream("10.0.0.1"), name(key))]).map(({ title }) => title);
  assert.deepEqual(titles("upstreams-down"), ["upstream 10.0.0.1 refuses"]);
  assert.deepEqual(titles("other-network"), ["upstream 10.0.0.1 refuses", '"db" does not resolve']);
});

test("problems come first, then warnings, then what is unknown; what is ok is nothing", () => {
  const states: readonly FindingState[] = ["unknown", "ok", "warning", "problem"];
  const found = problemsIn([report("web", ...states.map((state) => finding("search", state, state)))]);
  assert.deepEqual(
    found.map(({ state }) => state),
    ["problem", "warning", "unknown"],
  );
});
