// Proves what the page makes of the API's data: which failures are of now and which are one, what the table and the drawing show of
// 5 and of 200 containers, and that nothing grows without bound.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { drawingOf } from "../../src/ui/page/model/drawing.ts";
import { failingOf } from "../../src/ui/page/model/failing.ts";
import { verdictOf } from "../../src/ui/page/model/verdict.ts";
import { visibilityOf } from "../../src/ui/page/model/visibility.ts";
import { type Sample, type SampleFailure, manyContainers, sampleSnapshot } from "../support/page/sample.ts";

const ALL = { project: null };
const NOW_MS = Date.parse("2026-01-01T12:00:00Z");
const SHOP: Sample = {
  nowMs: NOW_MS,
  containers: [
    { name: "shop-web-1", project: "shop", service: "web", networks: ["shop_front"] },
    { name: "shop-api-1", project: "shop", service: "api", networks: ["shop_front"] },
    { name: "shop-api-2", project: "shop", service: "api", networks: ["shop_front"] },
    { name: "shop-db-1", project: "shop", service: "db", networks: ["shop_back"] },
    { name: "shop-cache-1", project: "shop", service: "cache", networks: ["shop_back"], exitCode: 137 },
  ],
};

function notOnBack(container: string): SampleFailure {
  const fix = `docker network connect shop_back ${container}`;
  return { container, name: "db", code: "other-network", sentence: `${container} is not on shop_back`, fix };
}

function failing(failures: readonly SampleFailure[]): ReturnType<typeof failingOf> {
  return failingOf(sampleSnapshot({ ...SHOP, failures }).failures, ALL, new Set(), NOW_MS);
}

test("containers of one service that fail for one reason are one entry with all fixes", () => {
  const { now } = failing([notOnBack("shop-api-1"), notOnBack("shop-api-2"), notOnBack("shop-web-1")]);
  assert.deepEqual(
    now.map(({ pairs, fixes }) => [pairs.map(({ container }) => container), fixes.length]),
    [
      [["shop-api-1", "shop-api-2"], 2],
      [["shop-web-1"], 1],
    ],
  );
});

test("one dead server is one entry, whatever is looked up", () => {
  const down = {
    code: "upstreams-down",
    sentence: "no server responds",
    fix: "dns11 upstreams",
    result: "SERVFAIL",
  } as const;
  const { now } = failing([
    { container: "shop-api-1", name: "a.example", ...down },
    { container: "shop-web-1", name: "b.example", ...down },
  ]);
  assert.deepEqual(
    now.map(({ severity, pairs }) => [severity, pairs.length]),
    [["bad", 2]],
  );
});

test("the outside world counts less than a container's name, and what resolves now is of earlier", () => {
  const { now, earlier } = failing([
    { container: "shop-web-1", name: "nx.example.com", code: "does-not-exist", sentence: "it does not exist" },
    notOnBack("shop-api-1"),
    { container: "shop-web-1", name: "api", code: "resolves-now", sentence: "it resolves now" },
  ]);
  assert.deepEqual(
    now.map(({ severity }) => severity),
    ["bad", "info"],
  );
  assert.equal(earlier.length, 1);
});

test("the verdict counts what containers need, and is silent about the rest", () => {
  const { containers, upstreams } = sampleSnapshot(SHOP);
  const known = { scope: ALL, status: null, containers, upstreams };
  const broken = failing([notOnBack("shop-api-1"), notOnBack("shop-api-2")]);
  assert.equal(verdictOf({ ...known, failing: broken }).text, "1 name fails in 2 containers");
  const external = failing([
    { container: "shop-web-1", name: "nx.example.com", code: "does-not-exist", sentence: "it does not exist" },
  ]);
  assert.equal(verdictOf({ ...known, failing: external }).level, "ok");
  assert.equal(verdictOf({ ...known, failing: external, containers: null }).level, "none");
});

test("the table merges containers that see the same, and marks what is looked up and fails", () => {
  const { matrix } = sampleSnapshot(SHOP);
  const { rows, columns } = visibilityOf(matrix, failing([notOnBack("shop-api-1")]).now, ALL);
  assert.deepEqual(
    columns.map(({ name }) => name),
    ["web", "api", "db", "cache"],
  );
  assert.deepEqual(
    rows.map((row) => [
      row.rows.map(({ container }) => container).join(" "),
      row.cells.map(({ kind }) => kind).join(" "),
    ]),
    [
      ["shop-web-1", "self sees none stopped"],
      ["shop-api-1", "sees sees fails stopped"],
      ["shop-api-2", "sees sees none stopped"],
      ["shop-db-1", "none none self stopped"],
    ],
  );
});

test("a name of several projects fails in that of its container", () => {
  const containers = manyContainers(50);
  const failure = { container: "team1-web-1", name: "db", code: "other-network", sentence: "not on it" } as const;
  const { matrix, failures } = sampleSnapshot({ containers, failures: [failure] });
  const { rows, columns } = visibilityOf(matrix, failingOf(failures, ALL, new Set(), Date.now()).now, ALL);
  const failed = rows.flatMap(({ cells }) => columns.filter((_, at) => cells[at]?.kind === "fails"));
  assert.deepEqual(
    failed.map(({ project }) => project),
    ["team1"],
  );
});

test("the table of 200 containers is bounded, and what fails is in it", () => {
  const containers = Array.from({ length: 200 }, (_, index) => ({ name: `c${index}`, networks: ["one"] }));
  const failure = { container: "c199", name: "c198", code: "other-network", sentence: "not on it" } as const;
  const { matrix, failures } = sampleSnapshot({ containers, failures: [failure] });
  const { rows, columns, omitted } = visibilityOf(matrix, failingOf(failures, ALL, new Set(), Date.now()).now, ALL);
  assert.deepEqual([rows.length, columns.length, omitted], [40, 40, 320]);
  assert.ok(rows.some(({ cells }) => cells.some(({ kind }) => kind === "fails")));
});

test("the drawing has each network and container once, inside its width, and lines make room for others", () => {
  for (const count of [5, 25, 200]) {
    const { networks, containers } = sampleSnapshot({ containers: manyContainers(count) });
    const { chips, lines, width, height, rows } = drawingOf({ networks, containers, failing: [], scope: ALL }, 600);
    assert.equal(
      chips.reduce((sum, chip) => sum + chip.containers.length, 0),
      count,
    );
    assert.equal(lines.length, networks?.networks.length);
    assert.equal(width, 600);
    for (const chip of chips)
      assert.ok(chip.x > 0 && chip.x + chip.width <= width && chip.y + 24 <= height, chip.label);
    // Two lines at one place do not overlap.
    for (const a of lines) {
      for (const b of lines) if (a !== b && a.x === b.x) assert.ok(a.endY < b.startY || b.endY < a.startY);
      assert.ok(rows.some(({ stops }) => stops.includes(a)));
    }
    assert.ok(count < 200 || height < 1_500, `${height}`);
  }
});

test("an arrow leads from what fails to what it needs", () => {
  const { networks, containers } = sampleSnapshot(SHOP);
  const known = {
    networks,
    containers,
    scope: ALL,
    failing: failing([notOnBack("shop-api-1"), notOnBack("shop-api-2")]).now,
  };
  const { arrows, chips } = drawingOf(known, 600);
  assert.equal(arrows.length, 1);
  assert.equal(chips.find(({ label }) => label.startsWith("api"))?.state, "fails");
});

test("every text has enough contrast on every background, in both schemes", () => {
  const css = readFileSync("src/ui/page/style/theme.css", "utf8");
  const [light = "", dark = ""] = css.split("@media (prefers-color-scheme: dark)");
  for (const scheme of [light, light + dark]) {
    const colours = new Map(
      [...scheme.matchAll(/--([a-z0-9-]+): (#[0-9a-f]{6});/g)].map(([, name = "", hex = ""]) => [name, hex]),
    );
    const pairs = [
      ...["text", "soft", "accent", "ok", "warn", "bad"].flatMap((text) => [
        [text, "card"],
        [text, "card-2"],
      ]),
      ["text", "back"],
      ["soft", "back"],
      ...["ok", "warn", "bad"].flatMap((tone) => [
        [tone, `${tone}-back`],
        ["text", `${tone}-back`],
      ]),
    ];
    for (const [text = "", back = ""] of pairs) {
      const ratio = contrast(colours.get(text) ?? "", colours.get(back) ?? "");
      assert.ok(ratio >= 4.5, `${text} on ${back}: ${ratio.toFixed(2)}`);
    }
  }
});

/** As WCAG defines it. */
function contrast(a: string, b: string): number {
  const [one, other] = [luminance(a), luminance(b)];
  return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
}

function luminance(hex: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
