// Proves how a diagnosis is shown: golden captures at 80 and 160 columns, and nothing from a container steers the terminal.

import assert from "node:assert/strict";
import { test } from "node:test";

import { diagnosisText } from "../../../cmd/text/doctor-text.ts";
import { type Finding, finding } from "../../../src/base/model/finding.ts";
import type { Cause, LastingFix } from "../../../src/api/causes.ts";
import { failureFindings } from "../../../src/doctor/checks/failing-names.ts";
import { upstreamFinding } from "../../../src/doctor/checks/upstream-check.ts";
import { serverRemedy } from "../../../src/doctor/checks/upstream-remedy.ts";
import { NOW, OTHER_NETWORK as CAUSE, aFailure, before } from "../support/failures.ts";
import { assertGolden } from "../support/golden.ts";
import { type Diagnosis, type Report, HOST, problemsIn } from "../../../src/doctor/problems.ts";

function failing(subject: string, cause: Cause): Finding[] {
  const failure = aFailure({ container: subject, containerId: subject, count: 118, last: before(1_000), cause });
  return failureFindings({ failures: [failure], misleading: [], unwatched: [], omitted: 0 }, subject, NOW);
}

function refused(address: string): Finding {
  const legs = (["udp", "tcp"] as const).map((protocol) => ({
    protocol,
    id: 1,
    reply: undefined,
    failure: "ECONNREFUSED",
    tookMs: 1,
  }));
  const listed = [{ address, file: "/etc/resolv.conf", line: Number(address.at(-1)) }];
  const server = { from: "host", address, port: 53 } as const;
  return upstreamFinding(server, legs, serverRemedy(server, { fact: undefined, listed, settingsFile: undefined }));
}

function report(subject: string, ...findings: readonly Finding[]): Report {
  return { subject, findings: [finding("loopback", "ok", "up"), ...findings], did: [], left: [] };
}

function diagnosis(machine: Report, ...containers: readonly Report[]): Diagnosis {
  return { machine, containers, problems: problemsIn([machine, ...containers]) };
}

function example(): Diagnosis {
  const dead = ["10.99.0.1", "10.99.0.2", "10.99.0.3"].map(refused);
  const wall = [
    finding("attachment", "problem", "dns11 could not attach (UNVERIFIED), so Docker's resolver answers", "Fix it."),
    finding(
      "foreign-rules",
      "problem",
      'chain "out" of table inet "wall" (hook output, priority -250) drops packets; queries do not get through',
      "Change or remove these rules. To list them, run: nsenter -t 1234 -n nft -a list ruleset",
    ),
    finding("answers", "problem", "a rule drops the packet (EPERM)", "Fix the other findings."),
  ];
  const second = { ...CAUSE, sentence: CAUSE.sentence.replace("shop-api-1", "shop-api-2") };
  const fix = "docker network connect shop_back shop-api-2";
  return diagnosis(
    report(HOST, ...dead),
    report("shop-api-1", ...dead, ...failing("shop-api-1", CAUSE)),
    report("shop-api-2", ...dead, ...failing("shop-api-2", { ...second, fix })),
    report("shop-web-1", ...dead, ...wall),
    report("plain", finding("libc", "warning", "musl 1.2.3: no TCP support before 1.2.4", "Use a newer image.")),
  );
}

for (const width of [80, 160]) {
  test(`a diagnosis at ${width} columns is as captured`, () => {
    const display = { width, paint: (text: string) => text };
    const text = diagnosisText(example(), { showsAll: false, display });
    assertGolden(`doctor-${width}`, text);
    // Commands stay on one line, so that they can be copied.
    const tooLong = text.split("\n").filter((line) => line.length > width && !line.includes("Fix now"));
    assert.deepEqual(tooLong, []);
  });
}

test("without problems there is one line", () => {
  const healthy = diagnosis(report(HOST), report("web"));
  assert.equal(diagnosisText(healthy, { showsAll: false }), "healthy (2 checks passed, --all shows them)\n");
  assert.match(
    diagnosisText(healthy, { showsAll: true }),
    /^Docker host\nSTATE +CHECK[^]*\nhealthy \(2 checks passed\)\n$/,
  );
});

test("a container that was asked about is said to be served or not first, and not to be healthy without", () => {
  const skipped = {
    ...finding("attachment", "ok", "not served by dns11 (host-network): it uses the host's network"),
    note: { isServed: false, text: "not served by dns11 (host-network): it uses the host's network" },
  };
  const text = diagnosisText(diagnosis(report(HOST), report("web", skipped)), { showsAll: false, showsServed: true });
  assert.equal(
    text,
    "NOTE     web: not served by dns11 (host-network): it uses the host's network\n\nno problem found (3 checks passed, --all shows them)\n",
  );
  const two = diagnosisText(diagnosis(report(HOST), report("web", skipped), report("db")), { showsAll: false });
  assert.match(two, /^healthy/, "of all containers, ps tells");
  const served = {
    ...finding("attachment", "ok", "dns11, since now"),
    note: { isServed: true, text: "served by dns11" },
  };
  const well = diagnosisText(diagnosis(report(HOST), report("web", served)), { showsAll: false, showsServed: true });
  assert.match(well, /^NOTE {5}web: served by dns11\n\nhealthy /);
});

test("a command that applies a lasting change is on one line, after it", () => {
  const command = `docker compose -p shop -f /srv/${"long/".repeat(20)}compose.yaml up -d api`;
  const cause = { ...CAUSE, lastingFix: { ...(CAUSE.lastingFix as LastingFix), command } };
  const text = diagnosisText(diagnosis(report(HOST), report("api", ...failing("api", cause))), { showsAll: false });
  assert.ok(text.includes(`: add "back"\n                       ${command}\n`), text);
});

test("states have colours", () => {
  const display = { width: 80, paint: (text: string, colour: string) => `<${colour}>${text}</>` };
  const text = diagnosisText(example(), { showsAll: false, display });
  assert.match(text, /^<red>PROBLEM<\/> {2}upstreams/m);
  assert.match(text, /^<yellow>WARNING<\/> {2}plain: /m);
});

test("control characters are escaped", () => {
  const evil = report("web", finding("search", "problem", "evil\u001B[2J\nPROBLEM  forged", "Fix\u009b31m it."));
  const text = diagnosisText(diagnosis(report(HOST), evil), { showsAll: true });
  // oxlint-disable-next-line no-control-regex -- control characters are what it matches
  assert.doesNotMatch(text, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
  assert.doesNotMatch(text, /^PROBLEM {2}forged/m);
});
