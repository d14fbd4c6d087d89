/**
 * While a container's image is being asked for its labels its names are known, and nothing is decided that labels decide:
 * neither is it attached as something that it may not be, nor is it taken for another one than it was.
 */
import assert from "node:assert/strict";
import { test } from "node:test";

import { settle } from "../../src/config/settle.ts";
import { DNS_LABEL } from "../../src/container/registry/label-routes.ts";
import { Journal } from "../../src/container/kind/journal.ts";
import { Bracket, warmThreadPool } from "../../src/container/namespace/bracket.ts";
import { closeEngineHost, openEngineHost } from "../../src/container/namespace/engine-host.ts";
import { Engine } from "../../src/container/watch/engine.ts";
import { compose } from "../../src/run/compose.ts";
import { Quarantines } from "../../src/run/quarantine/quarantines.ts";
import { NetlinkMemory } from "../../src/kernel/netlink-socket.ts";
import { createLog } from "../../src/observe/log.ts";
import { aContainer, aNetworkFact } from "../support/scripted/builders.ts";

test("what labels decide waits until it is known whose they are", async () => {
  await warmThreadPool();
  const host = openEngineHost(process.pid);
  const bracket = new Bracket();
  const run = { host: undefined, stateDir: "", enginePid: undefined, isBatching: true, config: undefined };
  const { roster, directory, reconciler, hostUpstreams } = compose({
    settings: { ...settle([]), ...run },
    log: createLog("silent"),
    engine: new Engine("/nowhere"),
    bracket,
    memory: new NetlinkMemory(),
    means: { tier: "nft-owner", hasZones: true },
    journal: new Journal("/nowhere"),
    host: () => host,
    onEngine: () => undefined,
    quarantines: Quarantines.none(),
    engineVersion: () => 28,
  });
  // Nothing that is wanted is done.
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
  assert.deepEqual(decided(), [["serve", "its label"]]);
  roster.put(awaited);
  assert.deepEqual(decided(), [["serve", "its label"]]);
  roster.put(aContainer({ labels }));
  assert.deepEqual(decided(), [["serve", undefined]]);
  hostUpstreams.close();
  bracket.close();
  closeEngineHost(host);
});
