// Proves what steps of builds resolve: the names of one network, at the address on the default bridge where a container has one.

import assert from "node:assert/strict";
import { test } from "node:test";

import { BuildNames, buildsFact } from "../../../src/features/listener/builds.ts";
import type { Directory } from "../../../src/container/registry/directory.ts";
import { aContainer, anEndpoint } from "../../support/scripted/builders.ts";
import { aDirectory, answerTo } from "../../unit/support/names.ts";

const SHOP = anEndpoint({ networkName: "shop", names: ["db", "store"], ipv4: "172.20.0.5" });
const BRIDGE = { names: ["db"], links: [], ipv4: "172.17.0.5", ipv6: undefined };
const db = aContainer({ id: "db", name: "db", endpoints: [SHOP] });
const other = anEndpoint({ networkName: "other", names: ["secret"], ipv4: "172.21.0.2" });

function directoryOf(builds: string | undefined): Directory {
  const containers = [db, aContainer({ id: "secret", name: "secret", endpoints: [other] })];
  return aDirectory(containers, {
    makeNames: () => [{ place: "first", source: new BuildNames(builds) }],
    networks: ["bridge", "shop", "other"],
  });
}

function found(directory: Directory, name: string): string {
  const place = { networkId: "id-bridge", ipv4Gateway: "172.17.0.1", ipv6Gateway: undefined };
  return answerTo(directory.viewOf(buildsFact(place, directory.networkNamed("shop"))), name);
}

test("names of the network alone, by every name, with the network's name or without", () => {
  const directory = directoryOf("shop");
  for (const name of ["db", "STORE", "db.shop"]) assert.equal(found(directory, name), "172.20.0.5", name);
  assert.equal(found(directory, "secret"), "forwarded");
});

test("a container that joins the default bridge, too, has its address there, until it leaves", () => {
  const directory = directoryOf("shop");
  directory.putContainer({ ...db, onDefaultBridge: BRIDGE });
  assert.equal(found(directory, "store"), "172.17.0.5");
  directory.putContainer(db);
  assert.equal(found(directory, "store"), "172.20.0.5");
  directory.removeContainer("db");
  assert.equal(found(directory, "store"), "forwarded");
});

test("the default bridge may be that network: its containers have names there", () => {
  const directory = directoryOf("bridge");
  directory.putContainer({ ...db, endpoints: [], onDefaultBridge: BRIDGE });
  assert.equal(found(directory, "db.bridge"), "172.17.0.5");
});

test("a container sees none of it", () => {
  const directory = directoryOf("shop");
  const plain = aContainer({ id: "plain", name: "plain", endpoints: [], onDefaultBridge: BRIDGE });
  directory.putContainer(plain);
  assert.equal(answerTo(directory.viewOf(plain), "store"), "forwarded");
});
