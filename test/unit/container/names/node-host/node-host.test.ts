// Proves host.docker.internal: the address from the settings, for KIND nodes only.

import assert from "node:assert/strict";
import { test } from "node:test";

import { NODE_HOST } from "../../../../../src/container/names/node-host/node-host.ts";
import { DEFAULT_BEHAVIOUR } from "../../../../../src/base/model/behaviour.ts";
import { FOUND, MISS, NameSearch, type VisibleNames } from "../../../../../src/base/model/visible-names.ts";
import { aContainer, aQuery } from "../../../../support/scripted/builders.ts";
import { placed } from "../../../support/reply.ts";

function namesOf(hostName: string): VisibleNames | undefined {
  return NODE_HOST.namesFor(aContainer(), { ownAddresses: [], hostDockerInternal: hostName });
}

function found(names: VisibleNames | undefined, name: string): [number, string, string] {
  const search = new NameSearch(DEFAULT_BEHAVIOUR);
  const result = names?.find(placed(aQuery({ name })).question, search) ?? MISS;
  return [result, search.addresses.v4.join("."), Buffer.from(search.addresses.v6).toString("hex")];
}

test("a node resolves the host's name in any letter case, and no name below it", () => {
  const names = namesOf("172.18.0.1");
  assert.deepEqual(found(names, "host.docker.internal"), [FOUND, "172.18.0.1", ""]);
  assert.deepEqual(found(names, "HOST.Docker.internal"), [FOUND, "172.18.0.1", ""]);
  for (const name of ["a.host.docker.internal", "docker.internal", "host.docker.internaL.x", "host.docker.interna"])
    assert.equal(found(names, name)[0], MISS, name);
});

test("an IPv6 address is the only one", () => {
  assert.deepEqual(found(namesOf("fd11::1"), "host.docker.internal"), [FOUND, "", `fd11${"0".repeat(27)}1`]);
});

test("other containers do not resolve it, nor does a node without an address in its settings", () => {
  assert.equal(NODE_HOST.namesFor(aContainer(), undefined), undefined);
  for (const word of ["deny", "forward"]) assert.equal(namesOf(word), undefined, word);
});
