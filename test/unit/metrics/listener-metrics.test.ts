// What arrives at addresses of the host, as metrics: the listener and each entry of listen, and nothing where both are off.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { ListenReports } from "../../../src/base/model/listen-report.ts";
import type { ListenerReport } from "../../../src/base/model/listener-report.ts";
import { listenerFamilies } from "../../../src/metrics/metrics.ts";

const LISTENER: ListenerReport = {
  state: "serving",
  addresses: ["169.254.53.53"],
  askers: 1,
  ambiguous: [],
  queries: 7,
  refused: { asker: 1, unknown: 2, host: 3, address: 4 },
  lost: 5,
};
const LISTEN: ListenReports = {
  entries: [
    {
      name: "lan",
      addresses: [
        { address: "192.168.1.10", state: "serving" },
        { address: "fd00::1", state: "waiting" },
      ],
      ...{ allow: ["192.168.1.0/24"], view: "published", forward: false, queries: 11 },
      refused: { source: 0, connections: 12 },
      lost: 13,
    },
  ],
  dropped: { link: 21, source: 22, rate: 23, port: 24 },
};

function values(name: string, ...readings: Parameters<typeof listenerFamilies>): Record<string, number> {
  const family = listenerFamilies(...readings).find((each) => each.name === name);
  return Object.fromEntries(
    [...(family?.values ?? [])].map(({ labels, value }) => [Object.values(labels).join(" "), value]),
  );
}

test("each has its queries, refusals by reason, losses, and whether it answers at all of its addresses", () => {
  const readings = { listener: LISTENER, listen: LISTEN };
  assert.deepEqual(values("dns11_listener_queries_total", readings), { listener: 7, "listen:lan": 11 });
  assert.deepEqual(values("dns11_listener_lost_total", readings), { listener: 5, "listen:lan": 13 });
  assert.deepEqual(values("dns11_listener_serving", readings), { listener: 1, "listen:lan": 0 });
  assert.deepEqual(values("dns11_listener_refused_total", readings), {
    ...{ "listener asker": 1, "listener unknown": 2, "listener host": 3, "listener address": 4 },
    ...{ "listen link": 21, "listen source": 22, "listen rate": 23, "listen port": 24 },
    ...{ "listen:lan source": 0, "listen:lan connections": 12 },
  });
});

test("there are none where nothing listens", () => {
  assert.deepEqual(listenerFamilies({ listener: null, listen: null }), []);
});
