// Proves the names of the default bridge: for its containers alone, after those of other networks, and only if set.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { DefaultBridgeSetting } from "../../../src/base/model/name-choices.ts";
import type { Directory } from "../../../src/container/registry/directory.ts";
import type { ContainerFact } from "../../../src/container/facts/fact.ts";
import type { PlacedNames } from "../../../src/container/names/name-sources.ts";
import { open } from "../../../src/features/default-bridge/default-bridge.ts";
import { aContainer, anEndpoint } from "../../support/scripted/builders.ts";
import { type DirectoryParts, aDirectory, answerTo, succeed } from "../../unit/support/names.ts";

function bridged(
  name: string,
  ipv4: string,
  parts: Partial<ContainerFact> = {},
  links: readonly string[] = [],
): ContainerFact {
  const endpoints = [anEndpoint({ networkName: "bridge", names: [], ipv4 }), ...(parts.endpoints ?? [])];
  const onDefaultBridge = { names: [name, `id-${name}`], links, ipv4, ipv6: undefined };
  return aContainer({ ...parts, id: name, name, endpoints, onDefaultBridge });
}

function directoryOf(...containers: readonly ContainerFact[]): Directory {
  return aDirectory(containers, { networks: ["bridge", "one"], makeNames: makeNames("names") });
}

function makeNames(defaultBridge: DefaultBridgeSetting): NonNullable<DirectoryParts["makeNames"]> {
  return (context) => [open().makeNames?.({ defaultBridge } as never, context) as PlacedNames];
}

function found(directory: Directory, container: ContainerFact, name: string): string {
  return answerTo(directory.viewOf(container), name);
}

const web = bridged("web", "172.17.0.2");
const client = bridged("client", "172.17.0.3", {}, ["/web:/client/backend"]);

test("containers of the bridge resolve each other by every name, and by links of their own", () => {
  const directory = directoryOf(web, client);
  for (const name of ["web", "WEB", "id-web", "web.bridge", "backend"])
    assert.equal(found(directory, client, name), "172.17.0.2", name);
  assert.equal(found(directory, web, "client"), "172.17.0.3");
  assert.equal(found(directory, web, "backend"), "forwarded");
});

test("a container that is not on the bridge sees none of its names", () => {
  const other = aContainer({ id: "other", name: "other" });
  const directory = directoryOf(web, other);
  assert.equal(found(directory, other, "id-web"), "forwarded");
  assert.equal(found(directory, web, "other"), "forwarded");
});

test("user-defined networks come first, whatever their names", () => {
  const endpoints = [anEndpoint({ networkName: "one", names: ["both"], ipv4: "172.20.0.5" })];
  const both = bridged("both", "172.17.0.5", { endpoints });
  const directory = directoryOf(web, both);
  assert.deepEqual(
    [found(directory, both, "both"), found(directory, both, "both.bridge"), found(directory, both, "web")],
    ["172.20.0.5", "172.17.0.5", "172.17.0.2"],
  );
});

test("without the setting the bridge has no names; a container that leaves it has none there", () => {
  assert.equal(
    found(succeed(directoryOf(web, client), {}, { makeNames: makeNames("off") }), client, "web"),
    "forwarded",
  );
  const directory = directoryOf(web, client);
  directory.putContainer({ ...web, endpoints: [], onDefaultBridge: undefined });
  assert.equal(found(directory, client, "web"), "forwarded");
  directory.putContainer(web);
  assert.equal(found(directory, client, "web"), "172.17.0.2");
  directory.removeContainer("web");
  assert.equal(found(directory, client, "web"), "forwarded");
});

test("what the bridge's names do not have goes to the servers of the container's file", () => {
  const nameservers = {
    kind: "captured",
    servers: ["10.0.0.1", "10.0.0.2"],
    isNdotsSet: false,
    followsHost: false,
  } as const;
  const { routes } = directoryOf().viewOf({ ...web, nameservers }).upstreams;
  assert.deepEqual(
    routes.map(({ servers }) => servers),
    [[...nameservers.servers].map((address) => ({ from: "container", address, port: 53 }))],
  );
});
