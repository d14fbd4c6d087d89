// What arrives at addresses of the host, as metrics: each place in the same families, also where several features have places.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { Family } from "../../../src/metrics/exposition.ts";
import { familiesOf, hostAddressFamilies } from "../../../src/metrics/metrics.ts";
import { idleMetrics } from "../../support/program/metrics-source.ts";

const LISTENER = { name: "listener", isServing: true, queries: 7, refused: { asker: 1, unknown: 2 }, lost: 5 };
const LAN = { name: "listen:lan", isServing: false, queries: 11, refused: { source: 0, connections: 12 }, lost: 13 };
const DROPPED = { name: "listen", refused: { link: 21, rate: 23 } };

function values(name: string, families: readonly Family[]): Record<string, number> {
  const found = families.filter((each) => each.name === name);
  assert.ok(found.length <= 1, name);
  return Object.fromEntries(
    found.flatMap((each) => [...each.values].map(({ labels, value }) => [Object.values(labels).join(" "), value])),
  );
}

function exposed(features: readonly Family[]): readonly Family[] {
  return familiesOf(idleMetrics(features));
}

test("each has its queries, refusals by reason, losses, and whether it answers at all of its addresses", () => {
  const families = exposed([...hostAddressFamilies([LISTENER]), ...hostAddressFamilies([LAN], DROPPED)]);
  assert.deepEqual(values("dns11_listener_queries_total", families), { listener: 7, "listen:lan": 11 });
  assert.deepEqual(values("dns11_listener_lost_total", families), { listener: 5, "listen:lan": 13 });
  assert.deepEqual(values("dns11_listener_serving", families), { listener: 1, "listen:lan": 0 });
  assert.deepEqual(values("dns11_listener_refused_total", families), {
    ...{ "listener asker": 1, "listener unknown": 2 },
    ...{ "listen:lan source": 0, "listen:lan connections": 12 },
    ...{ "listen link": 21, "listen rate": 23 },
  });
});

test("there are none where nothing listens", () => {
  assert.deepEqual(values("dns11_listener_serving", exposed([])), {});
});
