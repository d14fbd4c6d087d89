// Proves host.docker.internal: the address from the settings, for KIND nodes and for other containers.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { HostNameSetting } from "../../../../../src/base/model/name-choices.ts";
import { EngineHostName, type HostGateway } from "../../../../../src/container/names/host-name/host-name.ts";
import { DEFAULT_BEHAVIOUR } from "../../../../../src/base/model/behaviour.ts";
import { FOUND, MISS, NameSearch, type VisibleNames } from "../../../../../src/base/model/visible-names.ts";
import { aContainer, aNetworkFact, anEndpoint, aQuery } from "../../../../support/scripted/builders.ts";
import { placed } from "../../../support/reply.ts";

const BRIDGE: HostGateway = { ipv4: "172.17.0.1", ipv6: undefined };

const networkOf = (id: string): ReturnType<typeof aNetworkFact> =>
  aNetworkFact({ id, isInternal: id === "id-of-dark" });

function sourceWith(hostName: HostNameSetting): EngineHostName {
  return new EngineHostName({ hostName }, networkOf);
}

function namesOf(hostName: string): VisibleNames | undefined {
  const by = "kind.host-docker-internal";
  const node = { ownAddresses: [], hostDockerInternal: hostName, hostDockerInternalBy: by };
  return sourceWith("off").namesFor(aContainer(), node);
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

test("a node without an address in its settings does not resolve it", () => {
  for (const word of ["deny", "forward"]) assert.equal(namesOf(word), undefined, word);
});

test("other containers resolve it only where the settings say so: the host's address on the default bridge", () => {
  const off = sourceWith("off");
  const container = aContainer({ endpoints: [anEndpoint({ ipv4Gateway: "172.20.0.1" })] });
  assert.equal(off.setGateway(BRIDGE), false, "nobody has the name");
  assert.equal(off.namesFor(container, undefined), undefined);
  const source = sourceWith("gateway");
  source.succeed(off);
  assert.deepEqual(found(source.namesFor(container, undefined), "host.docker.internal"), [FOUND, "172.17.0.1", ""]);
  assert.equal(source.setGateway({ ...BRIDGE, ipv6: "fd17::1" }), true);
  assert.equal(source.setGateway({ ...BRIDGE, ipv6: "fd17::1" }), false, "nothing has changed");
  assert.deepEqual(
    found(source.namesFor(container, undefined), "host.docker.internal"),
    [FOUND, "172.17.0.1", ""],
    "a container without IPv6 does not reach the host by IPv6",
  );
});

test("without a default bridge the host is the gateway of the container's own network", () => {
  const source = sourceWith("gateway");
  const endpoints = [anEndpoint({ ipv4Gateway: "172.20.0.1", ipv6Gateway: "fd20::1" })];
  const names = source.namesFor(aContainer({ endpoints }), undefined);
  assert.deepEqual(found(names, "host.docker.internal"), [FOUND, "172.20.0.1", `fd20${"0".repeat(27)}1`]);
});

test("a container without a gateway does not reach the host, and does not resolve it", () => {
  const source = sourceWith("gateway");
  source.setGateway(BRIDGE);
  for (const endpoint of [anEndpoint({ ipv4Gateway: undefined }), anEndpoint({ networkName: "dark" })])
    assert.equal(source.namesFor(aContainer({ endpoints: [endpoint] }), undefined), undefined, endpoint.networkName);
});
