// Proves which failures are problems for the doctor, which are warnings, and which are neither.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { FailureReport } from "../../../../src/api/failures.ts";
import type { Cause } from "../../../../src/api/causes.ts";
import { NOW, OTHER_NETWORK as CAUSE, aFailure } from "../../support/failures.ts";
import { misleadingFindings, failureFindings } from "../../../../src/doctor/checks/failing-names.ts";

function findings(...failures: readonly FailureReport[]): ReturnType<typeof failureFindings> {
  return failureFindings({ failures, misleading: [], unwatched: [], omitted: 0 }, "c1", NOW);
}

test("a container's name that fails for a known cause is one problem for all types, with both fixes", () => {
  const [only, ...others] = findings(aFailure(), aFailure({ type: "AAAA" }));
  assert.deepEqual(others, []);
  assert.deepEqual([only?.code, only?.state], ["failing-names", "problem"]);
  assert.equal(only?.detail, `"db" does not resolve: 118 queries got NXDOMAIN, the last 2 s ago; ${CAUSE.sentence}`);
  assert.equal(
    only.remedy,
    'To fix it now: docker network connect shop_back shop-api-1. To fix it for good, in /srv/shop/compose.yaml: services.api.networks: add "back"',
  );
});

test("without a cause that breaks a container's name it is a warning", () => {
  const unknown: Cause = { ...CAUSE, code: "unknown-name", isBreaking: false };
  for (const each of [
    aFailure({ cause: unknown }),
    aFailure({ cause: null, name: null }),
    aFailure({ isContainerName: false, result: "SERVFAIL" }),
  ]) {
    assert.deepEqual(
      findings(each).map(({ state }) => state),
      ["warning"],
    );
  }
});

test("what is from earlier, is of another container or does not exist anywhere is nothing", () => {
  for (const earlier of ["ended", "resolved", "recovered", "idle"] as const)
    assert.deepEqual(findings(aFailure({ earlier })), []);
  assert.deepEqual(findings(aFailure({ containerId: "c2" })), []);
  assert.deepEqual(findings(aFailure({ isContainerName: false })), []);
  assert.deepEqual(failureFindings(undefined, "c1"), []);
});

test("a name that misleads is a problem; one of two projects is a warning, because no query fails", () => {
  const state = (code: Cause["code"]): string | undefined => {
    const cause = { ...CAUSE, code, lastingFix: null };
    const misleading = [{ name: "db", network: "shared", containers: ["a", "b"], clients: [], cause }];
    const [only] = misleadingFindings({ failures: [], misleading, unwatched: [], omitted: 0 });
    assert.equal(only?.remedy, "To fix it now: docker network connect shop_back shop-api-1");
    return only?.state;
  };
  assert.deepEqual([state("ambiguous"), state("paused")], ["warning", "problem"]);
});
