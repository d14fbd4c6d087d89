// Proves what ps, status, names and failures look like on 80 and 160 columns: reports recorded from a real engine are
// formatted and compared with files. `UPDATE_GOLDEN=1` writes them anew, to be read before they are committed.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { test } from "node:test";

import { failuresText } from "../../../cmd/text/failures-text.ts";
import { namesText } from "../../../cmd/names.ts";
import { psText } from "../../../cmd/ps.ts";
import { containerText, statusText } from "../../../cmd/status.ts";
import { type Display, PLAIN } from "../../../cmd/text/terminal.ts";
import type { FailuresReport } from "../../../src/api/failures.ts";
import type { NameList } from "../../../src/api/names.ts";
import type { Status } from "../../../src/api/status.ts";
import type { UpstreamReport } from "../../../src/api/upstreams.ts";
import { useEnvironment } from "../support/environment.ts";
import { assertGolden } from "../support/golden.ts";

// Times are local.
useEnvironment({ TZ: "UTC" });

const FOLDER = resolve("test/unit/cmd/golden");

const status = recorded("status") as Status;
const upstreams = recorded("upstreams") as UpstreamReport;
const failures = recorded("failures") as FailuresReport;
const nowMs = Date.parse(status.since) + 12 * 60_000;

const VIEWS: Readonly<Record<string, (display: Display) => string>> = {
  ps: (display) => psText(status, { display, nowMs }),
  "ps-wide": (display) => psText(status, { display, nowMs, isWide: true }),
  status: (display) => statusText({ status, upstreams, failures }, { display, nowMs }),
  "status-outage": (display) => statusText(outage(), { display, nowMs }),
  "status-wide": (display) => statusText({ status, upstreams, failures }, { display, nowMs, isWide: true }),
  "status-container": (display) =>
    containerText(status.containers.find(({ name }) => name === "shop-api-2") ?? assert.fail(), { display, nowMs }),
  "names-in": (display) => namesText(recorded("names-in") as NameList, { display }),
  names: (display) => namesText(recorded("names") as NameList, { display }),
  failures: (display) => failuresText(failures, true, nowMs, display),
};

for (const [view, text] of Object.entries(VIEWS)) {
  for (const width of [80, 160]) {
    test(`${view} on ${width} columns`, () => {
      const shown = text({ ...PLAIN, width });
      assertGolden(`${view}.${width}`, shown);
      // A command is not wrapped, so that it can be copied.
      const long = shown.split("\n").filter((line) => line.length > width && !/^ +(fix|for good): /.test(line));
      assert.deepEqual(long, []);
    });
  }
}

test("colours add nothing but colours", () => {
  const paint: Display["paint"] = (each, colour) => `<${colour}>${each}</>`;
  for (const [view, text] of Object.entries(VIEWS)) {
    const coloured = text({ width: 80, paint });
    const plain = coloured.replaceAll(/<\/?\w*>/g, "").replaceAll(/ +$/gm, "");
    assert.equal(plain, text({ ...PLAIN, width: 80 }).replaceAll(/ +$/gm, ""), view);
    assert.notEqual(coloured, plain, `${view} has colours`);
  }
});

/** All servers are down, the engine is away, and a container's name is ambiguous. */
function outage(): Parameters<typeof statusText>[0] {
  const down = upstreams.upstreams.map((each, index) => ({
    ...each,
    state: "down" as const,
    since: new Date(Date.parse(status.since) + index * 60_000).toISOString(),
  }));
  const engine = status.engine === null ? null : { ...status.engine, isConnected: false };
  return { status: { ...status, engine }, upstreams: { ...upstreams, upstreams: down }, failures: undefined };
}

function recorded(name: string): unknown {
  return JSON.parse(readFileSync(join(FOLDER, `${name}.json`), "utf8"));
}
