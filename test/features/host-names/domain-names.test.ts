/**
 * Names below the host's domain inside containers: those that a container sees by the setting `visible`, and no others.
 */
import assert from "node:assert/strict";
import { test } from "node:test";

import { COMPOSE_LABEL } from "../../../src/base/model/compose.ts";
import type { Directory } from "../../../src/container/registry/directory.ts";
import type { ContainerFact } from "../../../src/container/facts/fact.ts";
import { HostDomainNames } from "../../../src/features/host-names/domain-names.ts";
import { aContainer, anEndpoint } from "../../support/scripted/builders.ts";
import { composed, portsOf } from "../../unit/support/control-ports.ts";
import { rowsOf } from "../../unit/support/listed-names.ts";
import { type DirectoryParts, aDirectory, answerTo, succeed } from "../../unit/support/names.ts";

type MakeNames = NonNullable<DirectoryParts["makeNames"]>;

function container(
  name: string,
  networkName: string,
  ipv4: string,
  labels: Record<string, string> = {},
): ContainerFact {
  const endpoints = [anEndpoint({ networkName, names: [name, "shared"], ipv4 })];
  return aContainer({ id: `id-${name}`, name, endpoints, labels });
}

const CLIENT = container("client", "one", "10.1.0.2");
const PLAIN = container("plain", "bridge", "10.0.0.2");
const SERVICE = { [COMPOSE_LABEL.project]: "shop", [COMPOSE_LABEL.service]: "front", [COMPOSE_LABEL.number]: "1" };
const OTHERS = [
  container("web", "one", "10.1.0.3", SERVICE),
  container("db", "two", "10.2.0.3"),
  container("secret", "dark", "10.4.0.5"),
  PLAIN,
];

interface World {
  readonly directory: Directory;
  readonly names: HostDomainNames;
}

type Choices = Partial<ConstructorParameters<typeof HostDomainNames>[0]>;

/** With names that have succeeded `current`, or are the first. */
function made(choices: Choices, build: (makeNames: MakeNames) => Directory, current?: World): World {
  const all: HostDomainNames[] = [];
  const directory = build((context) => {
    const state = { domain: current?.names.domain, onSucceeded: (names: HostDomainNames) => void all.push(names) };
    const source = new HostDomainNames({ visible: "network", defaultBridge: "off", ...choices }, context, state);
    if (current === undefined) all.push(source);
    return [{ place: "host-domain", source }];
  });
  const [names] = all;
  assert.ok(names);
  return { directory, names };
}

function world(choices: Choices = {}): World {
  const networks = ["one", "two", "bridge", { name: "dark", isInternal: true }];
  const { directory, names } = made(choices, (makeNames) =>
    aDirectory([CLIENT, ...OTHERS.slice(0, 2)], { networks, makeNames }),
  );
  names.setDomain("docker");
  for (const fact of OTHERS.slice(2)) directory.putContainer(fact);
  return { directory, names };
}

function found(directory: Directory, name: string, asker = CLIENT): string {
  return answerTo(directory.viewOf(asker), name);
}

test("its own networks: by name, network, service and number, in any letter case, and any name below these", () => {
  const { directory } = world();
  const all = ["web", "WEB", "web.one", "front.shop", "1.front.shop", "api.web", "a.b.web.one", "a.1.front.shop"];
  for (const name of all) assert.equal(found(directory, `${name}.Docker`), "10.1.0.3", name);
  assert.equal(found(directory, "docker"), "empty", "the domain itself has no address");
  directory.putContainer(container("once", "one", "10.1.0.4", { ...SERVICE, [COMPOSE_LABEL.oneOff]: "True" }));
  for (const name of ["front.shop", "1.front.shop"]) assert.equal(found(directory, `${name}.docker`), "10.1.0.3", name);
  assert.equal(found(directory, "once.docker"), "10.1.0.4");
});

test("what it does not see does not exist, and other domains are not concerned", () => {
  const { directory } = world();
  for (const name of ["db", "db.two", "secret", "plain", "nobody", "web.two"])
    assert.equal(found(directory, `${name}.docker`), "NXDOMAIN", name);
  for (const name of ["web.docker.test", "xdocker", "web.notdocker"])
    assert.equal(found(directory, name), "forwarded", name);
});

test("other networks by the setting visible, never internal ones; those on the bridge by the setting default-bridge", () => {
  const { directory } = world({ visible: "all" });
  for (const name of ["db.docker", "db.two.docker", "x.db.docker"])
    assert.equal(found(directory, name), "10.2.0.3", name);
  assert.equal(found(directory, "shared.docker"), "10.1.0.2 10.1.0.3", "its own networks first");
  assert.equal(found(directory, "secret.docker"), "NXDOMAIN");
  assert.equal(found(directory, "plain.docker"), "NXDOMAIN");
  const { directory: withBridge } = world({ visible: "all", defaultBridge: "names" });
  assert.equal(found(withBridge, "plain.docker", PLAIN), "10.0.0.2");
  assert.equal(found(withBridge, "plain.docker"), "NXDOMAIN");
});

test("without the domain, and for a container or network that is gone, nothing is left", () => {
  const { directory, names } = world();
  directory.putContainer({ ...OTHERS[0], endpoints: [] } as ContainerFact);
  assert.equal(found(directory, "web.docker"), "NXDOMAIN");
  directory.putContainer(OTHERS[0] as ContainerFact);
  assert.equal(found(directory, "web.docker"), "10.1.0.3");
  directory.removeContainer("id-web");
  assert.equal(found(directory, "web.docker"), "NXDOMAIN");
  names.setDomain(undefined);
  assert.equal(found(directory, "web.docker"), "forwarded");
});

test("names with other settings have the domain, also where it changes while they are made ready", () => {
  const before = world();
  const after = made({ visible: "all" }, (makeNames) => succeed(before.directory, {}, { makeNames }), before);
  assert.equal(found(after.directory, "db.docker"), "10.2.0.3");
  const late = made(
    {},
    (makeNames) => {
      const next = aDirectory([], { networks: [], makeNames });
      for (const _ of next.catchUp(after.directory)) after.names.setDomain("late");
      next.succeed(after.directory);
      return next;
    },
    after,
  );
  assert.equal(found(late.directory, "web.docker"), "forwarded");
  assert.equal(found(late.directory, "web.late"), "10.1.0.3");
  late.names.setDomain(undefined);
  assert.equal(found(late.directory, "web.late"), "forwarded");
});

test("they are listed with the domain and their network", async () => {
  const [web, api, db] = [
    composed("shop", "web", "a", 2),
    composed("shop", "api", "ab", 3),
    composed("shop", "db", "b", 4),
  ];
  const state = { domain: "docker", onSucceeded: (): void => undefined };
  const makeNames: MakeNames = (context) => [
    { place: "host-domain", source: new HostDomainNames({ visible: "all", defaultBridge: "off" }, context, state) },
  ];
  assert.deepEqual(
    await rowsOf(portsOf([web, api, db], [], { makeNames }), web, "db.docker", "web.docker", "shop-api-1.docker"),
    [
      "db.docker: resolves from domain docker on b to 10.0.0.4+shop-db-1",
      "shop-api-1.docker: resolves from domain docker on a to 10.0.0.3+shop-api-1",
      "web.docker: resolves from domain docker on a to 10.0.0.2+shop-web-1",
    ],
  );
});
