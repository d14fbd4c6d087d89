// Proves who sees whom: by network, with several containers of a service, stopped ones, a name that leads to something else, and
// the limit of both sides.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { MatrixReport } from "../../../src/api/containers.ts";
import { STRICT_BEHAVIOUR } from "../../../src/base/model/behaviour.ts";
import { LIMITS } from "../../../src/base/limits.ts";
import { splitLabels } from "../../../src/container/facts/labels.ts";
import type { StoppedContainer } from "../../../src/control/causes/known-container.ts";
import { matrix } from "../../../src/control/reports/matrix.ts";
import type { ControlPorts } from "../../../src/control/situation/ports.ts";
import { aContainer, anEndpoint } from "../../support/scripted/builders.ts";
import { composed, portsOf } from "../support/control-ports.ts";

const WEB = composed("shop", "web", "a", 2);
const API = composed("shop", "api", "ab", 3);
const DB = composed("shop", "db", "b", 4);
const OTHER = composed("other", "db", "c", 5);

async function matrixOf(ports: ControlPorts, parameters = ""): Promise<MatrixReport> {
  return await matrix(ports, { query: new URLSearchParams(parameters) });
}

function drawn({ columns, rows }: MatrixReport): string[] {
  return [columns.map(({ name }) => name).join(" "), ...rows.map((row) => `${row.container} ${row.cells.join(" ")}`)];
}

test("a container sees the services on its networks, and no others", async () => {
  const report = await matrixOf(portsOf([WEB, API, DB, OTHER]), "project=shop");
  assert.deepEqual(drawn(report), ["api db web", "shop-api-1 1 1 1", "shop-db-1 1 1 0", "shop-web-1 1 0 1"]);
  const [api] = report.rows;
  assert.deepEqual([api?.project, api?.service, api?.networks], ["shop", "api", ["a", "b"]]);
});

test("without a project, the same service of two projects has two columns, and each sees its own", async () => {
  assert.deepEqual(drawn(await matrixOf(portsOf([API, DB, OTHER]))), [
    "db api db",
    "other-db-1 1 0 -1",
    "shop-api-1 -1 1 1",
    "shop-db-1 -1 1 1",
  ]);
});

test("all containers of a service count that the name leads to; a stopped one has a column without running ones", async () => {
  const second = { ...composed("shop", "api", "a", 9), id: "second".padEnd(64, "0"), name: "shop-api-2" };
  const stopped: StoppedContainer = {
    id: "gone",
    name: "shop-cron-1",
    ...splitLabels({ "com.docker.compose.project": "shop", "com.docker.compose.service": "cron" }, {}),
    networks: [{ name: "a", aliases: [] }],
    state: "exited",
    exitCode: 1,
    atMs: 0,
  };
  const report = await matrixOf(portsOf([WEB, API, second], [stopped]), "project=shop");
  assert.deepEqual(
    report.columns.map(({ name, containers, running }) => [name, containers.join("+"), running]),
    [
      ["api", "shop-api-1+shop-api-2", 2],
      ["cron", "shop-cron-1", 0],
      ["web", "shop-web-1", 1],
    ],
  );
  assert.deepEqual(report.rows.at(-1)?.cells, [2, 0, 1]);
});

test("a container without a project is a column with its name, also in the strict mode", async () => {
  const lone = aContainer({ id: "1".repeat(64), name: "Lone", endpoints: [] });
  const peer = aContainer({
    id: "2".repeat(64),
    name: "peer",
    endpoints: [anEndpoint({ networkId: "a", networkName: "a", names: ["peer"] })],
  });
  const ports = portsOf([lone, peer], [], { behaviour: STRICT_BEHAVIOUR });
  assert.deepEqual(drawn(await matrixOf(ports)), ["lone peer", "Lone 0 0", "peer 0 1"]);
});

test("both sides are bounded, and the rest is counted", async () => {
  const many = Array.from({ length: LIMITS.matrixSide + 3 }, (_, at) => composed("p", `s${at}`, "a", at % 250));
  const report = await matrixOf(portsOf(many));
  assert.deepEqual([report.rows.length, report.columns.length], [LIMITS.matrixSide, LIMITS.matrixSide]);
  assert.deepEqual([report.omittedRows, report.omittedColumns], [3, 3]);
  assert.ok(report.rows.every(({ cells }) => cells.length === LIMITS.matrixSide));
});

test("an unknown parameter is an error", async () => {
  await assert.rejects(matrixOf(portsOf([]), "projekt=x"), { code: "BAD_QUERY" });
});
