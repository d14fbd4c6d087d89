// Proves the text of `dns11 failures`: one row for each name and cause, with the cause and its fix below it.

import assert from "node:assert/strict";
import { test } from "node:test";

import { failuresText } from "../../../cmd/text/failures-text.ts";
import type { FailureReport } from "../../../src/api/failures.ts";
import { NOW, OTHER_NETWORK as CAUSE, aFailure } from "../support/failures.ts";

function text(failures: readonly FailureReport[], showsAll = false): string {
  return failuresText({ failures, misleading: [], unwatched: [], omitted: 0 }, showsAll, NOW);
}

test("types of one name are one row, with its cause and fixes below", () => {
  const shown = text([aFailure(), aFailure({ type: "AAAA" })]);
  const [head, row, ...rest] = shown.split("\n");
  assert.match(head ?? "", /^CONTAINER +NAME +TYPE +RESULT +COUNT +RATE +FIRST +LAST$/);
  assert.match(row ?? "", /^shop-api-1 +db +A,AAAA +NXDOMAIN +118 +60\/min +\d\d:\d\d:\d\d +1s ago$/);
  assert.deepEqual(rest, [
    `  why: ${CAUSE.sentence}`,
    "  fix: docker network connect shop_back shop-api-1",
    '  for good: /srv/shop/compose.yaml: services.api.networks: add "back"',
    "",
  ]);
});

test("names of the outside world, and names from earlier, are counted and shown with --all", () => {
  const outside = aFailure({ name: "nx.example", isContainerName: false, cause: null });
  const mended = aFailure({ name: "web", earlier: "resolved" });
  const hint = "2 failures of other names, or from earlier, not shown (--all)\n";
  assert.equal(text([outside, mended]), `no container's name fails\n\n${hint}`);
  assert.match(
    text([outside, mended], true),
    /nx\.example[^]*\nearlier\n[^]*web[^]* {2}now: the name has resolved since/,
  );
});

test("one missing network is one cause, with its names and containers; what can be fixed comes first", () => {
  const unknown = { ...CAUSE, code: "unknown-name", fix: null, lastingFix: null, isBreaking: false } as const;
  const of = (container: string, name: string): FailureReport => {
    const sentence = `"${name}" is on shop_back, ${container} is not`;
    const cause = { ...CAUSE, about: "shop_back", sentence, fix: `docker network connect shop_back ${container}` };
    return aFailure({ container, containerId: container, name, cause });
  };
  const lines = text([
    ...["a", "b", "c", "d", "e"].map((name) =>
      aFailure({ name, last: new Date(NOW).toISOString(), cause: { ...unknown, sentence: `no container "${name}"` } }),
    ),
    ...["shop-api-1", "shop-web-1"].flatMap((container) => ["db", "cache"].map((name) => of(container, name))),
  ]).split("\n");
  const rows = lines.filter((line) => line.startsWith("shop-"));
  assert.equal(rows.length, 2);
  assert.match(rows[0] ?? "", /^shop-api-1, shop-web-1 +db, cache +A +NXDOMAIN +236 /);
  assert.match(rows[1] ?? "", /^shop-api-1 +a, b, c, d and 1 more +A /);
  const fixes = lines.filter((line) => line.startsWith("  fix: "));
  assert.deepEqual(
    fixes,
    ["shop-api-1", "shop-web-1"].map((name) => `  fix: docker network connect shop_back ${name}`),
  );
});

test("who asks for what stays apart: containers are in one row only where they ask for the same names", () => {
  const unknown = { ...CAUSE, code: "unknown-name", fix: null, lastingFix: null, isBreaking: false } as const;
  const of = (container: string, name: string): FailureReport =>
    aFailure({ container, containerId: container, name, cause: { ...unknown, sentence: `no container "${name}"` } });
  const all = [of("a", "redis"), of("b", "cahce"), of("a", "queue"), of("c", "redis")];
  const rows = text(all)
    .split("\n")
    .filter((line) => /^[abc]/.test(line));
  assert.deepEqual(
    rows.map((row) => row.split(/ {2,}/).slice(0, 2)),
    [
      ["a, c", "redis"],
      ["b", "cahce"],
      ["a", "queue"],
    ],
  );
  const sidecar = text([aFailure({ container: "api", sharedWith: ["sidecar"] })]);
  assert.match(sidecar, /^api or sidecar +db +A/m);
});

test("a server that is down is one cause, in however many services it is set", () => {
  const lastingFix = (service: string): NonNullable<typeof CAUSE.lastingFix> => ({
    file: "/srv/shop/compose.yaml",
    service,
    key: `services.${service}.dns`,
    change: "replace or remove 10.0.0.1",
  });
  const services = Array.from({ length: 12 }, (_, index) => `s${index}`);
  const shown = text(
    services.map((container) =>
      aFailure({
        container,
        containerId: container,
        name: "a.test",
        cause: {
          ...{ ...CAUSE, code: "upstreams-down", sentence: "the only upstream server is down (10.0.0.1)" },
          ...{ fix: null, about: "10.0.0.1", lastingFix: lastingFix(container) },
        },
      }),
    ),
  );
  assert.match(shown, /^s0, s1, s2, s3 and 8 more +a\.test /m);
  assert.equal(shown.match(/ why: /g)?.length, 1);
});

test("an ended container, a hidden name, and a name of two projects", () => {
  const shown = failuresText(
    {
      failures: [aFailure({ isRunning: false, earlier: "ended", name: null, cause: null })],
      misleading: [
        { name: "db", network: "shared", containers: ["shop-db-1", "other-db-1"], clients: [], cause: CAUSE },
      ],
      unwatched: [{ container: "deaf", cause: CAUSE }],
      omitted: 0,
    },
    true,
    NOW,
  );
  assert.match(shown, /^shop-api-1 \(ended\) +\(hidden\) /m);
  assert.match(shown, /\ndb on network shared resolves, but misleads its clients\n {2}why: /);
  assert.match(shown, /\ndeaf: its failures are not seen\n {2}why: /);
});

test("control characters of a name or a label are written out", () => {
  const evil = { ...CAUSE, sentence: "\u001B[2J" };
  assert.ok(!text([aFailure({ container: "\u001B[31m", cause: evil })]).includes("\u001B"));
});
