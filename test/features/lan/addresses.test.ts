/**
 * Addresses of the host at which others may ask, in a namespace of their own: what keeps one entry from answering leaves the others
 * alone, and what an entry sees follows its network and the containers that are servers.
 */
import assert from "node:assert/strict";
import { openSync } from "node:fs";
import { test } from "node:test";

import { Fault } from "../../../src/base/lib/fault.ts";
import { createLog } from "../../../src/base/log/log.ts";
import { RateLimitedLog } from "../../../src/base/log/rate-limited-log.ts";
import { readAddressBlock } from "../../../src/base/model/address.ts";
import { mergeSettings } from "../../../src/config/merge-settings.ts";
import { closeSockets } from "../../../src/container/namespace/sockets.ts";
import { closeEngineHost, openEngineHost } from "../../../src/container/namespace/engine-host.ts";
import { warmThreadPool } from "../../../src/container/namespace/namespace-runner.ts";
import { DNS_LABEL } from "../../../src/container/registry/label-routes.ts";
import { Lan, type LanParts, listenId } from "../../../src/features/lan/addresses.ts";
import type { ListenEntry, ListenView } from "../../../src/features/lan/feature.ts";
import { open } from "../../../src/features/lan/lan.ts";
import type { RunCore } from "../../../src/features/contract.ts";
import { closeQuietly } from "../../../src/kernel/libc.ts";
import { previewPlatform } from "../../../src/run/platform.ts";
import { composeQuerySide } from "../../../src/run/query-side.ts";
import { startEngineSide } from "../../support/program/engine-side.ts";
import { Netns } from "../../support/rig/netns.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { aContainer, aNetworkFact } from "../../support/scripted/builders.ts";

const NO_VIEW = { names: [], upstreams: { routes: [], isNdotsSet: false } };
const ON_NETWORK: ListenView = { kind: "network", name: "shop" };

function anEntry(name: string, address: string, more: Partial<ListenEntry> = {}): ListenEntry {
  const block = readAddressBlock(address) ?? assert.fail();
  return { name, addresses: [address], allow: [block], view: { kind: "published" }, forwards: false, ...more };
}

type Rig = AsyncDisposable & {
  readonly lan: Lan;
  readonly netns: Netns;
  readonly stateOf: (name: string) => string;
};

async function listening(
  entries: readonly ListenEntry[],
  parts: Partial<Pick<LanParts, "quarantineOf" | "publisherAt">> = {},
  isRefused: (id: string) => boolean = () => false,
): Promise<Rig> {
  await warmThreadPool();
  const netns = await Netns.create();
  for (const { addresses } of entries)
    for (const address of addresses)
      await netns.enter("ip", ["address", "add", address, "dev", "lo", ...(address.includes(":") ? ["nodad"] : [])]);
  const run = { host: undefined, stateDir: "", enginePid: undefined, isReplacing: false, config: undefined };
  const repeats = new RateLimitedLog(createLog("warn"));
  const own = openEngineHost(process.pid);
  const host = { ...own, network: openSync(netns.netnsPath, "r") };
  const platform = previewPlatform();
  const { openSubnetEndpoint } = composeQuerySide({ ...mergeSettings([]), ...run, folders: [] }, repeats);
  const lan = new Lan(entries, {
    ...platform,
    host: () => host,
    openEndpoint: (pairs, asked) => {
      if (!isRefused(asked.id)) return openSubnetEndpoint(pairs, asked);
      closeSockets(pairs);
      throw new Fault("ENOSPC", "There is no room for another watch");
    },
    dial: () => assert.fail("nothing is forwarded"),
    viewOf: () => NO_VIEW,
    problemOf: () => undefined,
    quarantineOf: () => undefined,
    publisherAt: () => undefined,
    ...parts,
    keep: undefined,
    inherit: () => undefined,
    startAfter: Promise.resolve(),
    onEvent: () => undefined,
  });
  await waitFor("each address to be tried", () => (lan.isSettled ? true : undefined));
  const stateOf = (name: string): string => {
    const report = lan.entryReports.find((each) => each.name === name);
    return report?.addresses.map(({ state, reason }) => [state, reason].filter(Boolean).join(": ")).join("; ") ?? "";
  };
  const dispose = async (): Promise<void> => {
    await lan.stop();
    repeats.close();
    platform.runner.close();
    closeQuietly(host.network);
    closeEngineHost(own);
    await netns[Symbol.asyncDispose]();
  };
  return { lan, netns, stateOf, [Symbol.asyncDispose]: dispose };
}

test("an address that cannot be bound fails alone", async () => {
  // A link-local address cannot be bound without its link, and no settings file has one.
  await using rig = await listening([anEntry("a", "fe80::1"), anEntry("b", "192.0.2.1")]);
  assert.match(rig.stateOf("a"), /^failed: /);
  assert.equal(rig.stateOf("b"), "serving");
});

test("where an entry's sockets cannot be read nothing is left open, and all answer when they can", async () => {
  let isRefused = true;
  const entries = [anEntry("a", "192.0.2.1"), anEntry("b", "192.0.2.2"), anEntry("c", "192.0.2.3")];
  await using rig = await listening(entries, {}, (id) => isRefused && id === listenId("b"));
  const listeners = async (): Promise<string> => (await rig.netns.enter("ss", ["-Htln"])).stdout;
  for (const { name } of entries) assert.match(rig.stateOf(name), /no room for another watch/);
  assert.equal(await listeners(), "");
  isRefused = false;
  rig.lan.configure(entries);
  await waitFor("all to answer", () =>
    entries.every(({ name }) => rig.stateOf(name) === "serving") ? true : undefined,
  );
  assert.equal((await listeners()).trim().split("\n").length, entries.length);
});

test("where the addresses cannot be looked up, entries that answer go on, and others say why not", async () => {
  let isFull = false;
  const publisherAt = (): undefined => {
    if (isFull) throw new Fault("ENFILE", "The machine has no free descriptors");
  };
  const known = [anEntry("a", "192.0.2.1"), anEntry("b", "192.0.2.2")];
  const added = [...known, anEntry("c", "192.0.2.3")];
  await using rig = await listening(known, { publisherAt });
  await rig.netns.enter("ip", ["address", "add", "192.0.2.3", "dev", "lo"]);
  isFull = true;
  rig.lan.configure(added);
  await waitFor("the new entry to be tried", () => (rig.stateOf("c").startsWith("failed") ? true : undefined));
  assert.match(rig.stateOf("c"), /no free descriptors/);
  const states = ["a", "b"].map((name) => rig.stateOf(name));
  assert.deepEqual(states, ["serving", "serving"]);
  isFull = false;
  rig.lan.configure(added);
  await waitFor("the new entry to answer", () => (rig.stateOf("c") === "serving" ? true : undefined));
});

test("an entry whose queries crash dns11 does not answer until its quarantine ends", async () => {
  let reason: string | undefined = "dns11 crashed repeatedly";
  const entries = [anEntry("a", "192.0.2.1"), anEntry("b", "192.0.2.2")];
  await using rig = await listening(entries, { quarantineOf: ({ name }) => (name === "a" ? reason : undefined) });
  assert.equal(rig.stateOf("a"), "failed: dns11 crashed repeatedly");
  assert.equal(rig.stateOf("b"), "serving");
  reason = undefined;
  rig.lan.configure(entries);
  await waitFor("the entry to answer", () => (rig.stateOf("a") === "serving" ? true : undefined));
});

test("what an entry sees follows its network, and containers that are servers", async () => {
  await warmThreadPool();
  const settings = mergeSettings([]);
  const feature = open({ settings, onEvent: () => undefined } as unknown as RunCore);
  const { way, close } = startEngineSide({ features: [feature] });
  await way.reconciler.stop();
  // It touches nothing of this machine any more.
  await feature.stop?.(false);
  let updates = 0;
  feature.viewsChanged = () => updates++;
  const listen = [anEntry("a", "192.0.2.1", { view: ON_NETWORK })];
  feature.configure?.({ ...settings, features: { ...settings.features, listen } });
  const networks = (): unknown =>
    feature.outsiders?.facts.flatMap(({ endpoints }) => endpoints.map((each) => each.networkName));
  assert.deepEqual(networks(), []);
  const names = feature.outsiders?.viewOf?.(listenId("a"))?.names;
  assert.notDeepEqual(names, [], "names of dns11's own are not forwarded");
  const network = aNetworkFact({ name: "shop" });
  way.putNetwork(network);
  assert.deepEqual(networks(), ["shop"]);
  way.roster.put(aContainer({ id: "1".repeat(64), name: "asker", labels: { [DNS_LABEL]: "container:server" } }));
  const before = updates;
  way.roster.put(aContainer({ id: "2".repeat(64), name: "server" }));
  assert.equal(updates, before + 1);
  way.removeNetwork(network.id);
  assert.deepEqual(networks(), []);
  close();
});
