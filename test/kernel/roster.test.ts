/**
 * While a container's image is being inspected for its labels, its names resolve, and nothing is decided that depends on
 * labels: it is neither attached in a mode that may be wrong, nor does its earlier decision change.
 */
import assert from "node:assert/strict";
import { test } from "node:test";

import { warmThreadPool } from "../../src/container/namespace/namespace-runner.ts";
import { DNS_LABEL } from "../../src/container/registry/label-routes.ts";
import { startEngineSide } from "../support/program/engine-side.ts";
import { aContainer, aNetworkFact } from "../support/scripted/builders.ts";

test("decisions about labels wait until the image's labels are known", async () => {
  await warmThreadPool();
  const { way, close } = startEngineSide();
  const { roster, directory, reconciler } = way;
  // The reconciler does nothing.
  await reconciler.stop();
  directory.putNetwork(aNetworkFact());
  const labels = { [DNS_LABEL]: "10.0.0.1" };
  const awaited = aContainer({ imageLabels: { labels, source: "awaited" } });
  const decided = (): unknown => [...roster.decisions()].map(([, { kind, warning }]) => [kind, warning?.slice(0, 9)]);
  roster.put(awaited);
  assert.deepEqual([...directory.containers.keys()], [awaited.id]);
  roster.refresh();
  assert.deepEqual(decided(), []);
  roster.put(aContainer({ imageLabels: { labels, source: "unknown" } }));
  assert.deepEqual(decided(), [["serve", "label io."]]);
  roster.put(awaited);
  assert.deepEqual(decided(), [["serve", "label io."]]);
  roster.put(aContainer({ labels }));
  assert.deepEqual(decided(), [["serve", undefined]]);
  close();
});
