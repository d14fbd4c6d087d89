// Proves NAME.NETWORK of networks that a container is not on: only if set, only with a route, and never before its own.

import assert from "node:assert/strict";
import { test } from "node:test";

import { reverseLabels, addressBytes } from "../../../src/base/model/address.ts";
import { DEFAULT_BEHAVIOUR } from "../../../src/base/model/behaviour.ts";
import { hashOf } from "../../../src/base/model/label-table.ts";
import type { VisibleSetting } from "../../../src/base/model/name-choices.ts";
import type { Directory } from "../../../src/container/registry/directory.ts";
import type { ContainerFact, NetworkFact } from "../../../src/container/facts/fact.ts";
import { OtherNetworks } from "../../../src/features/other-networks/other-networks.ts";
import { TYPE, aContainer, aNetworkFact, anEndpoint } from "../../support/scripted/builders.ts";
import { composed, portsOf } from "../../unit/support/control-ports.ts";
import { rowsOf } from "../../unit/support/listed-names.ts";
import { type DirectoryParts, aDirectory, answerTo } from "../../unit/support/names.ts";

const PROJECT = "com.docker.compose.project";
const NETWORKS: readonly Partial<NetworkFact>[] = [
  { name: "one" },
  { name: "two", project: "shop" },
  { name: "br.three" },
  { name: "dark", isInternal: true },
  { name: "mesh", scope: "swarm" },
];

function container(name: string, networkName: string, ipv4: string, parts: Partial<ContainerFact> = {}): ContainerFact {
  const endpoints = [anEndpoint({ networkName, names: [name, "shared"], ipv4, ipv6: `fd00::${ipv4.split(".")[3]}` })];
  return aContainer({ id: name, name, endpoints, ...parts });
}

const client = container("client", "one", "10.1.0.2");
const OTHERS = [
  container("web", "two", "10.2.0.3"),
  container("api", "br.three", "10.3.0.4"),
  container("secret", "dark", "10.4.0.5"),
  container("node", "mesh", "10.5.0.6"),
];

function directoryOf(visible: VisibleSetting, asker: ContainerFact): Directory {
  return aDirectory([asker, ...OTHERS], {
    networks: NETWORKS,
    makeNames: makeNames(visible),
  });
}

function makeNames(visible: VisibleSetting): NonNullable<DirectoryParts["makeNames"]> {
  return ({ networks }) => [{ place: "other-networks", source: new OtherNetworks(visible, networks) }];
}

function found(name: string, visible: VisibleSetting, asker = client): string {
  const view = directoryOf(visible, asker).viewOf(asker);
  const isIPv6 = answerTo(view, name, TYPE.AAAA).includes(":");
  return `${answerTo(view, name)}${isIPv6 ? " and IPv6" : ""}`;
}

test("by default only the container's own networks are visible", () => {
  assert.equal(found("web.two", "network"), "forwarded");
  assert.equal(found("client.one", "network"), "10.1.0.2 and IPv6");
});

test("with all, NAME.NETWORK of every other network is, in any letter case; the name alone is not", () => {
  for (const [name, address] of [
    ["web.two", "10.2.0.3"],
    ["WEB.Two", "10.2.0.3"],
    ["api.br.three", "10.3.0.4"],
  ] as const)
    assert.equal(found(name, "all"), address, name);
  for (const name of ["web", "api", "nobody.two", "web.three", "x.web.two", "two"])
    assert.equal(found(name, "all"), "forwarded", name);
});

test("nothing of internal and swarm networks is visible, and nothing to a container without a way out", () => {
  for (const name of ["secret.dark", "node.mesh"]) assert.equal(found(name, "all"), "forwarded", name);
  const inside = container("inside", "dark", "10.4.0.9");
  assert.equal(found("web.two", "all", inside), "forwarded");
});

test("addresses of a family are told where the container has a gateway of that family", () => {
  const endpoint = { networkName: "one", names: ["client"], ipv6Gateway: "fd00::1" };
  const both = aContainer({ id: "client", name: "client", endpoints: [anEndpoint(endpoint)] });
  assert.equal(found("web.two", "all", both), "10.2.0.3 and IPv6");
  const only6 = aContainer({ ...both, endpoints: [anEndpoint({ ...endpoint, ipv4Gateway: undefined })] });
  assert.equal(found("web.two", "all", only6), "empty and IPv6");
});

test("with project, only networks of the container's own project are visible, which an image cannot claim", () => {
  assert.equal(found("web.two", "project"), "forwarded");
  const member = container("client", "one", "10.1.0.2", { labels: { [PROJECT]: "shop" } });
  assert.equal(found("web.two", "project", member), "10.2.0.3");
  assert.equal(found("api.br.three", "project", member), "forwarded");
  const claiming = container("client", "one", "10.1.0.2", {
    imageLabels: { labels: { [PROJECT]: "shop" }, source: "known" },
  });
  assert.equal(found("web.two", "project", claiming), "forwarded");
});

test("addresses of visible networks have names, too", () => {
  const directory = directoryOf("all", client);
  const pointer = (address: string): boolean => {
    const labels = reverseLabels(addressBytes(address) as Uint8Array);
    const { names } = directory.viewOf(client);
    return names.some((each) => each.pointer(labels, labels.length, hashOf(labels), DEFAULT_BEHAVIOUR) !== undefined);
  };
  assert.deepEqual(["10.2.0.3", "10.4.0.5", "10.9.9.9"].map(pointer), [true, false, false]);
});

test("networks that come and go are followed without a new view", () => {
  const directory = directoryOf("all", client);
  const view = directory.viewOf(client);
  const isFound = (): boolean => answerTo(view, "late.four") !== "forwarded";
  assert.equal(isFound(), false);
  directory.putNetwork(aNetworkFact({ name: "four" }));
  directory.putContainer(container("late", "four", "10.6.0.2"));
  assert.equal(isFound(), true);
  directory.removeContainer("late");
  directory.removeNetwork("id-of-four");
  assert.equal(isFound(), false);
});

test("they are listed with their network", async () => {
  const web = composed("shop", "web", "a", 2);
  const parts = { makeNames: makeNames("all") };
  const ports = portsOf([web, composed("shop", "db", "b", 4)], [], parts);
  assert.deepEqual(await rowsOf(ports, web, "db.b"), ["db.b: resolves from other network on b to 10.0.0.4+shop-db-1"]);
});
