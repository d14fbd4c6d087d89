/** What a container reaches by what the engine says of its networks, and whose setting counts. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { BadSettings } from "../../../src/config/bad-settings.ts";
import { mergeSettings } from "../../../src/config/merge-settings.ts";
import type { ContainerFact, EndpointFact, NetworkFact } from "../../../src/container/facts/fact.ts";
import { Filters } from "../../../src/features/families/families.ts";
import { FAMILIES_ENTRY, familiesOf } from "../../../src/features/families/feature.ts";
import { isGiven, leftOut, reachOf } from "../../../src/features/families/reach.ts";
import type { Client } from "../../../src/query/client/client.ts";
import { addressBytes } from "../../../src/base/model/address.ts";
import { aContainer, aNetworkFact, anEndpoint } from "../../support/scripted/builders.ts";

const BLOCKS = { addressBlocks: ["172.20.0.0/16", "fd00:1::/64"] };
const NETWORKS: Readonly<Record<string, NetworkFact>> = {
  dual: aNetworkFact({ name: "dual", ...BLOCKS }),
  four: aNetworkFact({ name: "four", addressBlocks: ["172.20.0.0/16"] }),
  dark: aNetworkFact({ name: "dark", isInternal: true, ...BLOCKS }),
  lan: aNetworkFact({ name: "lan", driver: "macvlan" }),
  plugin: aNetworkFact({ name: "plugin", driver: "weave", isInternal: true }),
  swarm: aNetworkFact({
    name: "swarm",
    driver: "overlay",
    scope: "swarm",
    swarm: { isIngress: false, subnets: ["10.0.1.0/24"] },
  }),
};
const FOUR = { ipv4: "172.20.0.2", ipv4Gateway: "172.20.0.1" };
const SIX = { ipv6: "fd00:1::2", ipv6Gateway: "fd00:1::1" };
const NONE = { ipv4: undefined, ipv4Gateway: undefined, ipv6: undefined, ipv6Gateway: undefined };

function on(
  networks: Readonly<Record<string, Partial<EndpointFact>>>,
  parts: Partial<ContainerFact> = {},
): ContainerFact {
  const endpoints = Object.entries(networks).map(([networkName, more]) =>
    anEndpoint({ ...NONE, networkName, ...more }),
  );
  return aContainer({ endpoints, ...parts });
}

function given(fact: ContainerFact, ...addresses: readonly string[]): string[] {
  const reach = reachOf(fact, (id) => NETWORKS[id.replace("id-of-", "")]);
  return addresses.filter((each) => isGiven(addressBytes(each) ?? assert.fail(each), reach));
}

const ALL = ["192.0.2.1", "172.20.0.9", "127.0.0.1", "10.0.1.7", "2001:db8::1", "fd00:1::9", "::1"];

test("through a gateway everything; without one what is on its own networks", () => {
  assert.deepEqual(given(on({ dual: { ...FOUR, ...SIX } }), ...ALL), ALL);
  assert.deepEqual(given(on({ four: FOUR }), ...ALL), ["192.0.2.1", "172.20.0.9", "127.0.0.1", "10.0.1.7", "::1"]);
  // Old engines report a gateway of an internal network that leads nowhere.
  const dark = on({ dark: { ...FOUR, ...SIX } });
  assert.deepEqual(given(dark, ...ALL), ["172.20.0.9", "127.0.0.1", "fd00:1::9", "::1"]);
  assert.deepEqual(given(on({ dark: { ipv4: "172.20.0.2" } }), ...ALL), ["172.20.0.9", "127.0.0.1", "::1"]);
  assert.deepEqual(given(on({ four: FOUR, dark: SIX }), "2001:db8::1", "fd00:1::9"), ["fd00:1::9"]);
});

test("what is not known is not left out", () => {
  assert.deepEqual(given(on({ gone: FOUR }), ...ALL), ALL);
  assert.deepEqual(given(on({}), ...ALL), ALL);
  assert.deepEqual(given(on({ four: FOUR }, { isUndescribed: true }), ...ALL), ALL);
  assert.deepEqual(given(on({ plugin: { ipv4: "10.9.0.2", ipv6: "fd09::2" } }), ...ALL), ALL);
});

test("networks without a bridge: of several machines, and of the host's own network", () => {
  assert.deepEqual(given(on({ swarm: { ipv4: "10.0.1.2" } }), ...ALL), [...ALL.slice(0, 4), "::1"]);
  assert.deepEqual(given(on({ lan: FOUR }), ...ALL), [...ALL.slice(0, 4), "::1"]);
});

test("which families some are left out of", () => {
  assert.deepEqual(leftOut(reachOf(on({ four: FOUR }), (id) => NETWORKS[id.replace("id-of-", "")])), ["IPv6"]);
});

function settingsWith(...texts: readonly unknown[]): ReturnType<typeof familiesOf> {
  const families = texts.map((text) => FAMILIES_ENTRY.read(text));
  return familiesOf(mergeSettings([{ source: "file", values: { families }, where: (key) => key }]));
}

interface TestClient {
  readonly client: Pick<Client, "filter" | "repeater" | "onClose">;
  forgotten: number;
  close(): void;
}

function aTestClient(): TestClient {
  const closing: (() => void)[] = [];
  const client = {
    forgotten: 0,
    client: {
      filter: undefined,
      repeater: { forget: () => void client.forgotten++ },
      onClose: (act: () => void) => void closing.push(act),
    } as unknown as TestClient["client"],
    close: () => closing.forEach((act) => act()),
  };
  return client;
}

test("a container has the first setting of its networks, or the one for everyone, and the kernel forgets when that changes", () => {
  const facts = new Map([["web", on({ four: FOUR, dual: { ...FOUR, ...SIX } }, { id: "web" })]]);
  const directory = { containers: facts, network: (id: string) => NETWORKS[id.replace("id-of-", "")] };
  const filters = new Filters();
  filters.follow({ directory: () => directory } as never);
  const web = aTestClient();
  const { client } = web;
  const filterNow = (): Client["filter"] => client.filter;
  filters.open("web", client);
  assert.equal(client.filter, undefined);
  const text = (families: readonly string[]): string | undefined => {
    filters.configure(settingsWith(...families));
    return filterNow()?.text;
  };
  assert.match(text(["ipv4"]) ?? "", /^IPv6 addresses are left out \(setting families: ipv4\)$/);
  assert.match(text(["ipv4", "four=ipv6"]) ?? "", /^IPv4 addresses are left out \(setting families: four=ipv6\)$/);
  assert.equal(text(["ipv4", "dual=all", "four=ipv6"]), undefined);
  assert.equal(text(["other=ipv4"]), undefined);
  assert.equal(text(["reachable"]), undefined, "it has both gateways");
  facts.set("web", on({ four: FOUR }, { id: "web" }));
  filters.changed("web");
  assert.match(filterNow()?.text ?? "", /^IPv6 addresses to which the container has no route are left out/);
  const [before, { forgotten }] = [filterNow(), web];
  filters.changed("web");
  assert.deepEqual([filterNow() === before, web.forgotten], [true, forgotten], "nothing has changed");
  filters.configure([]);
  assert.deepEqual([filterNow(), web.forgotten], [undefined, forgotten + 1]);
  web.close();
  filters.configure(settingsWith("ipv6"));
  assert.equal(filterNow(), undefined, "it is closed");
  const outsider = aTestClient();
  filters.configure(settingsWith("ipv4"));
  filters.open("host", outsider.client);
  assert.equal(outsider.client.filter, undefined, "whoever is no container");
});

test("inside of a node only what needs no facts", () => {
  const filters = new Filters();
  const { client } = aTestClient();
  filters.open("node", client);
  filters.configure(settingsWith("ipv4", "four=ipv6"));
  assert.match(client.filter?.text ?? "", /ipv4/);
  filters.configure(settingsWith("reachable"));
  assert.equal(client.filter, undefined);
});

test("the setting: a word, a list with networks, no word twice", () => {
  assert.deepEqual(familiesOf(mergeSettings([])), [{ network: undefined, families: "all" }]);
  assert.deepEqual(settingsWith("reachable"), [{ network: undefined, families: "reachable" }]);
  assert.deepEqual(settingsWith("ipv4", "shop_default=all"), [
    { network: undefined, families: "ipv4" },
    { network: "shop_default", families: "all" },
  ]);
  for (const bad of ["ipv5", "shop=", "a b=ipv4", "=ipv4", "host=ipv4", 7, null])
    assert.throws(() => FAMILIES_ENTRY.read(bad), /invalid .*use .*all, ipv4, ipv6(?:,| or) reachable/, String(bad));
  for (const [twice, what] of [
    [["ipv4", "ipv6"], /families: has two values for everyone else/],
    [["a=ipv4", "a=ipv4"], /families: has two values for network "a"/],
  ] as const)
    assert.throws(
      () => settingsWith(...twice),
      (error) => error instanceof BadSettings && what.test(String(error)),
    );
});
