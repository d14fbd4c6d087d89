// Proves what the page makes of the API's data: which failures are of now and which are one, what the table and the drawing show of
// 5 and of 200 containers, and that nothing grows without bound.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { drawingOf } from "../../src/ui/page/model/drawing.ts";
import { CHIP_HEIGHT } from "../../src/ui/page/model/chip.ts";
import { failingName, problemsOf } from "../../src/api/problems.ts";
import { isFailing } from "../../src/api/failures.ts";
import { failingIn, failingOf, sentenceOf } from "../../src/ui/page/model/failing.ts";
import { measuredRtt, runsOf } from "../../src/ui/page/model/past.ts";
import { verdictOf } from "../../src/ui/page/model/verdict.ts";
import { visibilityOf, sharingOf } from "../../src/ui/page/model/visibility.ts";
import { type Sample, type SampleFailure, longNames, manyContainers, sampleSnapshot } from "../support/page/sample.ts";

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
  return {
    container,
    name: "db",
    code: "other-network",
    sentence: `${container} is not on shop_back`,
    fix,
    about: "shop_back",
  };
}

function failing(failures: readonly SampleFailure[]): ReturnType<typeof failingOf> {
  return failingOf(sampleSnapshot({ ...SHOP, failures }).failures, ALL, new Set(), NOW_MS);
}

test("one missing network is one entry, with all names, containers and fixes", () => {
  const { now } = failing([
    notOnBack("shop-api-1"),
    notOnBack("shop-api-2"),
    { ...notOnBack("shop-api-1"), name: "cache" },
    { ...notOnBack("shop-web-1"), fix: "docker network connect --alias web shop_back shop-web-1" },
    { ...notOnBack("shop-web-1"), fix: "docker network connect other_back shop-web-1", about: "other_back" },
  ]);
  const found = now.map((entry) => {
    const { names, containers, cause, fixes } = entry;
    return [names, containers, fixes.length, cause === null ? "" : sentenceOf(cause, entry)];
  });
  const all = "these names are on network shop_back; these containers are not on it";
  assert.deepEqual(found, [
    [["db", "cache"], ["shop-api-1", "shop-api-2", "shop-web-1"], 3, all],
    [["db"], ["shop-web-1"], 1, "shop-web-1 is not on shop_back"],
  ]);
});

test("names that nothing has are one entry after those with a fix, and a cause keeps its key while time passes", () => {
  const gone = (name: string): SampleFailure => {
    const sentence = `no container on this engine has the name "${name}"`;
    return { container: "shop-web-1", name, code: "unknown-name", sentence };
  };
  const exited = (container: string, ago: string): SampleFailure => {
    const sentence = `"cache" is container shop-cache-1, which exited with code 137, ${ago} ago`;
    return { container, name: "cache", code: "not-running", sentence, fix: "docker start shop-cache-1" };
  };
  const { now } = failing([
    gone("a"),
    gone("b"),
    gone("c"),
    exited("shop-api-1", "26 s"),
    exited("shop-web-1", "27 s"),
  ]);
  assert.deepEqual(
    now.map(({ cause, symptoms }) => [cause?.code, symptoms.length]),
    [
      ["not-running", 2],
      ["unknown-name", 3],
    ],
  );
  assert.equal(failing([exited("shop-api-1", "3 min")]).now[0]?.key, now[0]?.key);
});

test("a container is told its own sentence and fix, and nothing of the others", () => {
  const { failures, containers } = sampleSnapshot({
    ...SHOP,
    failures: [notOnBack("shop-web-1"), notOnBack("shop-api-1")],
  });
  const api = containers?.containers.find(({ name }) => name === "shop-api-1") ?? assert.fail();
  const own = failingIn(failures, api, NOW_MS);
  assert.deepEqual(
    own.map(({ symptoms, fixes, cause }) => [symptoms.length, fixes, cause?.sentence]),
    [[1, ["docker network connect shop_back shop-api-1"], "shop-api-1 is not on shop_back"]],
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
    now.map(({ severity, symptoms }) => [severity, symptoms.length]),
    [["bad", 2]],
  );
});

test("the page and `dns11 failures` have one list: servers that fail count for any name, and a typo of an outside name for none", () => {
  const failures = [
    { container: "shop-api-1", name: "a.example", code: "upstreams-down", sentence: "down", result: "SERVFAIL" },
    { container: "shop-web-1", name: "b.example", code: "upstream-error", sentence: "fails", result: "REFUSED" },
    { container: "shop-web-1", name: "nx.example.com", code: "does-not-exist", sentence: "it does not exist" },
    notOnBack("shop-api-1"),
  ] as const;
  const { failures: report } = sampleSnapshot({ ...SHOP, failures });
  const failed = (report?.failures ?? []).filter(isFailing).map((each) => failingName(each));
  const listed = problemsOf(failed).flatMap(({ names }) => names);
  const shown = failing(failures).now.filter(({ severity }) => severity !== "info");
  assert.deepEqual(new Set(listed), new Set(["a.example", "b.example", "db"]));
  assert.deepEqual(new Set(shown.flatMap(({ names }) => names)), new Set(listed));
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
  const known = { scope: ALL, muted: 0, status: null, containers, upstreams };
  const broken = failing([notOnBack("shop-api-1"), notOnBack("shop-api-2")]);
  assert.equal(verdictOf({ ...known, shown: broken.now }).text, "1 name fails in 2 containers");
  const muted = verdictOf({ ...known, shown: [], muted: 1 });
  assert.deepEqual([muted.level, muted.text], ["ok", "All other names of containers resolve"]);
  assert.match(muted.detail, /^1 cause muted, /);
  const off = verdictOf({ ...known, shown: [], areFailuresOff: true });
  assert.equal(off.text, "Failures are not recorded");
  const external = failing([
    { container: "shop-web-1", name: "nx.example.com", code: "does-not-exist", sentence: "it does not exist" },
  ]);
  assert.equal(verdictOf({ ...known, shown: external.now }).level, "ok");
  assert.equal(verdictOf({ ...known, shown: external.now, containers: null }).level, "none");
  const stopped = verdictOf({ ...known, shown: [], connection: "no-daemon" });
  assert.deepEqual([stopped.level, stopped.text], ["bad", "dns11 is not running"]);
});

test("the table merges containers that see the same, and marks what is looked up and fails", () => {
  const { matrix } = sampleSnapshot(SHOP);
  const { rows, columns } = visibilityOf(matrix, failing([notOnBack("shop-api-1")]).now, ALL);
  assert.deepEqual(
    columns.map(({ name }) => name),
    ["db", "web", "api", "cache"],
  );
  assert.deepEqual(
    rows.map((row) => [
      row.rows.map(({ container }) => container).join(" "),
      row.cells.map(({ kind }) => kind).join(" "),
    ]),
    [
      ["shop-api-1", "fails sees sees stopped"],
      ["shop-web-1", "none self sees stopped"],
      ["shop-api-2", "none sees sees stopped"],
      ["shop-db-1", "self none none stopped"],
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

test("a container in the namespace of another one is where that one is, and fails as that one does", () => {
  const { networks, containers, matrix, failures } = sampleSnapshot(longNames());
  const { now } = failingOf(failures, ALL, new Set(), Date.now());
  const { chips } = drawingOf({ networks, containers, failing: now, scope: ALL }, 2_000);
  const [mail, proxy] = ["mail-1", "mail-proxy-1"].map((label) => chips.find((each) => each.label === label));
  assert.deepEqual([proxy?.state, proxy?.y], ["fails", mail?.y]);
  const { rows } = visibilityOf(matrix, now, ALL, sharingOf(containers));
  const row = rows.find((each) => each.rows[0]?.container === "acme-platform-checkout-mail-proxy-1");
  assert.equal(row?.cells.filter(({ kind }) => kind === "fails").length, 4);
});

test("a server that nobody queries has no latency, and what is known is drawn in parts", () => {
  const values = measuredRtt({ rttMs: [null, 2, 3, 3, 3, 4], queries: [0, 5, 5, 0, 0, 1] });
  assert.deepEqual(values, [null, 2, 3, null, null, 4]);
  assert.deepEqual(
    runsOf(values).map((run) => run.map(({ index }) => index)),
    [[1, 2], [5]],
  );
});

test("an arrow leads from what fails to what it needs", () => {
  const { networks, containers } = sampleSnapshot(SHOP);
  const known = {
    networks,
    containers,
    scope: ALL,
    failing: failing([notOnBack("shop-api-1"), notOnBack("shop-api-2")]).now,
  };
  const { arrows, labels, chips } = drawingOf(known, 600);
  assert.deepEqual(
    arrows.map(({ title }) => title),
    ["shop-api-1 looks up db, and it fails"],
  );
  assert.deepEqual(
    labels.map(({ text }) => text),
    ["db"],
  );
  assert.equal(chips.find(({ label }) => label.startsWith("api"))?.state, "fails");
});

test("no arrow and none of their labels crosses a chip or the name of a network, whatever the width", () => {
  const { networks, containers, failures } = sampleSnapshot(longNames());
  const known = { networks, containers, failing: failingOf(failures, ALL, new Set(), Date.now()).now, scope: ALL };
  for (const width of [320, 600, 1_200]) {
    const { arrows, labels, chips, lines, textX, height } = drawingOf(known, width);
    assert.ok(arrows.length > 4);
    const boxes = [
      ...chips.map(({ x, y, width: wide, label }) => ({ x, y, right: x + wide, bottom: y + CHIP_HEIGHT, label })),
      ...lines.map(({ startY, label, note }) => {
        const right = textX + 4 + (label.length + (note === "" ? 0 : note.length + 2)) * 7.25;
        return { x: textX + 4, y: startY - 8, right, bottom: startY + 8, label };
      }),
    ];
    for (const { key, path } of arrows) {
      for (const [x1, y1, x2, y2] of segmentsOf(path)) {
        const hit = boxes.find(
          ({ x, y, right, bottom }) =>
            Math.max(x1, x2) > x && Math.min(x1, x2) < right && Math.max(y1, y2) > y && Math.min(y1, y2) < bottom,
        );
        assert.equal(hit?.label, undefined, `${width} pixels: ${key}`);
      }
    }
    const texts = labels.map(({ text: label, x, y }) => {
      return { label, x, y: y - 8, right: x + label.length * 6.4, bottom: y + 3 };
    });
    assert.ok(texts.length > 1 && texts.every(({ bottom }) => bottom < height));
    for (const text of texts) {
      const hit = [...boxes, ...texts].find(
        (each) =>
          each !== text && text.right > each.x && text.x < each.right && text.bottom > each.y && text.y < each.bottom,
      );
      assert.equal(hit?.label, undefined, `${width} pixels: the label ${text.label}`);
    }
  }
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

/** The straight parts of a path. */
function* segmentsOf(path: string): Generator<readonly [number, number, number, number]> {
  let [x, y] = [0, 0];
  for (const [, kind = "", rest = ""] of path.matchAll(/([MHV])([\d.,-]+)/g)) {
    const [first = 0, second = 0] = rest.split(",").map(Number);
    const [nextX, nextY] = kind === "M" ? [first, second] : kind === "H" ? [first, y] : [x, first];
    if (kind !== "M") yield [x, y, nextX, nextY];
    [x, y] = [nextX, nextY];
  }
}

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
