// Proves that names and upstreams follow the facts: joins, leaves and renames, and the upstream servers of each container.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { PlacedNames } from "../../../../src/container/names/name-sources.ts";
import type { Directory } from "../../../../src/container/registry/directory.ts";
import type {
  ContainerFact,
  EndpointFact,
  NameserversFact,
  NetworkFact,
} from "../../../../src/container/facts/fact.ts";
import { STRICT_BEHAVIOUR } from "../../../../src/base/model/behaviour.ts";
import type { Server, View } from "../../../../src/base/model/view.ts";
import { aContainer, aNetworkFact, aRoute, anEndpoint } from "../../../support/scripted/builders.ts";
import { type DirectoryParts, aDirectory, answerTo } from "../../support/names.ts";

const DOCKER: Server = { from: "docker", address: "127.0.0.11", port: 53 };
const HOST = { from: "host" as const, address: "10.0.0.1", port: 53 };
const OWN = { from: "container" as const, address: "10.0.0.2", port: 53 };
const BOTH: NameserversFact = { kind: "listed", servers: [HOST, OWN], isNdotsSet: false, isOwn: false };

test("a container's names resolve in every container on its network, itself included", () => {
  const directory = directoryOf("one");
  const web = container("web", [on("one", "172.20.0.2")]);
  const db = container("db", [on("one", "172.20.0.3")]);
  directory.putContainer(web);
  directory.putContainer(db);
  assert.deepEqual(found(directory, db, "web"), "172.20.0.2");
  assert.deepEqual(found(directory, web, "web"), "172.20.0.2");
});

test("a view that was created before a container joined resolves it, too", () => {
  const directory = directoryOf("one");
  const web = container("web", [on("one", "172.20.0.2")]);
  directory.putContainer(web);
  const view = directory.viewOf(web);
  directory.putContainer(container("db", [on("one", "172.20.0.3")]));
  assert.equal(foundIn(view, "db"), "172.20.0.3");
  directory.removeContainer("db");
  assert.equal(foundIn(view, "db"), "forwarded");
});

test("names of a network do not resolve in containers that are not on it", () => {
  const directory = directoryOf("one", "two");
  const web = container("web", [on("one", "172.20.0.2")]);
  directory.putContainer(web);
  directory.putContainer(container("db", [on("two", "172.21.0.3")]));
  assert.equal(found(directory, web, "db"), "forwarded");
});

test("leaving one network removes the names there, and no others", () => {
  const directory = directoryOf("one", "two");
  const both = container("both", [on("one", "172.20.0.2"), on("two", "172.21.0.2")]);
  directory.putContainer(both);
  const view = directory.viewOf(both);
  directory.putContainer(container("both", [on("two", "172.21.0.2")]));
  assert.deepEqual([foundIn(view, "both.one"), foundIn(view, "both.two")], ["forwarded", "172.21.0.2"]);
});

test("a rename moves the name and keeps the aliases", () => {
  const directory = directoryOf("one");
  const web = container("web", [on("one", "172.20.0.2", { names: ["web", "alias"] })]);
  directory.putContainer(web);
  const renamed = { ...web, name: "site", endpoints: [on("one", "172.20.0.2", { names: ["site", "alias"] })] };
  directory.putContainer(renamed);
  assert.deepEqual(
    ["web", "site", "alias"].map((name) => found(directory, renamed, name)),
    ["forwarded", "172.20.0.2", "172.20.0.2"],
  );
  assert.equal(directory.containers.get("web")?.name, "site");
});

test("the default bridge has no names, except those given by a rename", () => {
  const directory = directoryOf("one", "bridge");
  const endpoints = [on("bridge", "172.17.0.2"), on("one", "172.20.0.2")];
  const nameless = aContainer({ id: "id-of-web", name: "web", endpoints });
  const renamed = container("job", [on("bridge", "172.17.0.3", { names: ["job"] })]);
  directory.putContainer(nameless);
  directory.putContainer(renamed);
  const view = directory.viewOf(nameless);
  assert.equal(foundIn(view, "web.bridge"), "forwarded");
  assert.notEqual(foundIn(view, "job.bridge"), "forwarded");
});

test("a view lists the networks in search order", () => {
  const directory = directoryOf("a", "b", "c");
  const web = container("web", [on("b", "10.0.2.2"), on("c", "10.0.3.2", { gatewayPriority: 5 }), on("a", "10.0.1.2")]);
  directory.putContainer(web);
  assert.deepEqual(
    directory.viewOf(web).names.flatMap(({ places }) => places),
    ["c", "a", "b"],
  );
});

test("an unknown network is ignored, and so are its names", () => {
  const directory = directoryOf("one");
  const web = container("web", [on("one", "172.20.0.2"), on("gone", "172.29.0.2")]);
  directory.putContainer(web);
  assert.deepEqual(
    directory.viewOf(web).names.flatMap(({ places }) => places),
    ["one"],
  );
  directory.removeNetwork("id-of-one");
  assert.deepEqual(
    directory.viewOf(web).names.flatMap(({ places }) => places),
    [],
  );
  directory.removeContainer("web");
  assert.equal(directory.containers.size, 0);
});

test("a network that is reported again keeps its names", () => {
  const directory = directoryOf("one");
  const web = container("web", [on("one", "172.20.0.2")]);
  directory.putContainer(web);
  directory.putNetwork(aNetworkFact({ name: "one" }));
  assert.equal(found(directory, web, "web"), "172.20.0.2");
});

test("links apply to their container only: target and alias, or a target without an alias", () => {
  const directory = directoryOf("one");
  const web = container("web", [on("one", "172.20.0.2")]);
  const client = container("client", [on("one", "172.20.0.4", { links: ["Web:Site", "web"] })]);
  directory.putContainer(web);
  directory.putContainer(client);
  assert.deepEqual([found(directory, client, "Site"), found(directory, client, "site")], ["172.20.0.2", "forwarded"]);
  assert.deepEqual([found(directory, client, "web"), found(directory, web, "Site")], ["172.20.0.2", "forwarded"]);
});

test("our own address is removed before the list is cut to three servers; the host's stays", () => {
  const servers = [
    { from: "container" as const, address: "127.0.0.11" },
    { from: "host" as const, address: "127.0.0.11" },
    ...["10.0.0.1", "10.0.0.2", "10.0.0.3"].map((address) => ({ from: "container" as const, address })),
  ];
  assert.deepEqual(upstreamsOf({ kind: "listed", servers, isNdotsSet: true, isOwn: false }), {
    routes: [
      aRoute("", [
        { from: "host", address: "127.0.0.11", port: 53 },
        { from: "container", address: "10.0.0.1", port: 53 },
        { from: "container", address: "10.0.0.2", port: 53 },
      ]),
    ],
    isNdotsSet: true,
  });
});

test("without a known list Docker's resolver is used", () => {
  assert.deepEqual(upstreamsOf({ kind: "unknown" }), { routes: [aRoute("", [DOCKER])], isNdotsSet: false });
});

test("behind Docker's resolver are the host's servers, where the container is known to reach outside, and on no swarm network", () => {
  const swarm = { driver: "overlay", swarm: { isIngress: false, subnets: [] } };
  const place = (
    network: Partial<NetworkFact>,
    gateway?: string,
    replacesDocker = true,
    nameservers: NameserversFact = { kind: "unknown", mayBeHosts: true },
  ): View["upstreams"]["routes"] => {
    const directory = aDirectory([], { networks: [{ name: "one", ...network }], replacesDocker });
    directory.setHost([HOST, { ...HOST, address: "10.0.0.2", isBackup: true }]);
    const endpoints = [anEndpoint({ networkName: "one", ipv4Gateway: gateway })];
    const fact = aContainer({ endpoints, nameservers });
    return unexplained(directory.viewOf(fact).upstreams).routes;
  };
  const alone = [aRoute("", [DOCKER])];
  assert.deepEqual(place({}, "192.0.2.1"), [aRoute("", [DOCKER, { ...HOST, isBackup: true }])]);
  assert.deepEqual(place({}, "192.0.2.1", false), alone);
  assert.deepEqual(place({}, "192.0.2.1", true, { kind: "unknown" }), alone, "the engine may have a list of its own");
  assert.deepEqual(place({ isInternal: true }, "192.0.2.1"), alone);
  assert.deepEqual(place({}), alone);
  // Whether such a network leads outside, only Docker knows.
  assert.deepEqual(place({ driver: "ipvlan" }), alone);
  assert.deepEqual(place(swarm, "192.0.2.1"), alone);
});

test("names of networks that several machines have are left to Docker's resolver, unless a source has it asked for them", () => {
  const swarm = { name: "mesh", driver: "overlay", swarm: { isIngress: false, subnets: [] } };
  const nameservers = { kind: "listed", servers: [HOST], isOwn: false, isNdotsSet: false } as const;
  const member = aContainer({ endpoints: [anEndpoint({ networkName: "mesh", names: ["own"] })], nameservers });
  const of = (parts: Pick<DirectoryParts, "leavesToDocker" | "makeNames">, fact = member): [number, Server[]] => {
    const directory = aDirectory([fact], { networks: ["one", swarm], ...parts });
    const { names, upstreams } = directory.viewOf(fact);
    return [names.flatMap(({ places }) => places).length, upstreams.routes.flatMap(({ servers }) => servers)];
  };
  const asks = { namesFor: () => undefined, asksDocker: true };
  const makeNames = (): PlacedNames[] => [{ place: "swarm", source: asks }];
  assert.deepEqual(of({ leavesToDocker: true }), [0, [DOCKER]]);
  assert.deepEqual(of({ leavesToDocker: true, makeNames }), [1, [HOST]]);
  assert.deepEqual(of({}), [1, [HOST]]);
  const other = { ...member, endpoints: [anEndpoint({ networkName: "one", names: ["own"] })] };
  assert.deepEqual(of({ leavesToDocker: true }, other), [1, [HOST]]);
  const ingress = { ...swarm, swarm: { ...swarm.swarm, isIngress: true } };
  assert.equal(aDirectory([member], { networks: [ingress] }).networksAcrossMachines(member).length, 0);
});

test("the host's list is the current one, with the upstreams of a stub; without any, Docker's resolver is used", () => {
  const directory = directoryOf("one");
  const web = aContainer({ nameservers: { kind: "host", isNdotsSet: false } });
  const routes = (): View["upstreams"]["routes"] => unexplained(directory.viewOf(web).upstreams).routes;
  assert.deepEqual(routes(), [aRoute("", [DOCKER])]);
  const before = directory.viewOf(web);
  for (const servers of [[HOST], [HOST, { ...HOST, address: "10.0.0.2", isBackup: true }]]) {
    directory.setHost(servers);
    assert.deepEqual(routes(), [aRoute("", servers)]);
  }
  assert.deepEqual(
    unexplained(before.upstreams).routes,
    [aRoute("", [DOCKER])],
    "views that were made before stay as they were",
  );
});

// Driver, whether the network is internal, the endpoint's gateways, and whether it has external access.
for (const [driver, isInternal, hasIpv4Gateway, hasIpv6Gateway, expected] of [
  ["bridge", false, true, false, true],
  ["bridge", false, false, true, true],
  ["bridge", false, false, false, false],
  ["bridge", true, true, true, false],
  ["macvlan", false, true, false, true],
  ["null", false, true, false, false],
  ["host", false, true, false, false],
] as const) {
  const what = `${isInternal ? "an internal" : "a"} ${driver} network with${hasIpv4Gateway ? "" : "out"} IPv4 and with${hasIpv6Gateway ? "" : "out"} IPv6 gateway`;
  test(`${what} has ${expected ? "" : "no "}external access`, () => {
    const ipv4Gateway = hasIpv4Gateway ? "192.0.2.1" : undefined;
    const ipv6Gateway = hasIpv6Gateway ? "2001:db8::1" : undefined;
    const directory = aDirectory([], { networks: [] });
    directory.putNetwork(aNetworkFact({ driver, isInternal }));
    const view = directory.viewOf(
      aContainer({ endpoints: [anEndpoint({ ipv4Gateway, ipv6Gateway })], nameservers: BOTH }),
    );
    assert.deepEqual(unexplained(view.upstreams).routes, [aRoute("", expected ? [HOST, OWN] : [OWN])]);
  });
}

test("the default bridge gives external access to a container that is also on an internal network", () => {
  const directory = aDirectory([], { networks: [] });
  directory.putNetwork(aNetworkFact({ name: "one", isInternal: true }));
  directory.putNetwork(aNetworkFact({ name: "bridge" }));
  const inside = container("web", [on("one", "172.20.0.2")]);
  const both = container("web", [on("one", "172.20.0.2"), on("bridge", "172.17.0.2")]);
  const servers = [inside, both].map(
    (fact) => unexplained(directory.viewOf({ ...fact, nameservers: BOTH }).upstreams).routes,
  );
  assert.deepEqual(servers, [[aRoute("", [OWN])], [aRoute("", [HOST, OWN])]]);
});

function directoryOf(...networks: readonly string[]): Directory {
  return aDirectory([], { networks });
}

function container(name: string, endpoints: readonly EndpointFact[]): ContainerFact {
  return aContainer({
    id: name,
    name,
    endpoints: endpoints.map((endpoint) => (endpoint.names.length > 0 ? endpoint : { ...endpoint, names: [name] })),
  });
}

function on(networkName: string, ipv4: string, parts: Partial<EndpointFact> = {}): EndpointFact {
  return anEndpoint({ networkName, ipv4, names: [], ...parts });
}

function upstreamsOf(nameservers: NameserversFact): View["upstreams"] {
  return unexplained(directoryOf("one").viewOf(aContainer({ nameservers })).upstreams);
}

// Without the origins and the withheld servers, which other tests cover.
function unexplained({ routes, isNdotsSet }: View["upstreams"]): View["upstreams"] {
  return {
    routes: routes.map(({ suffix, labelCount, servers, isLocal }) => ({ suffix, labelCount, servers, isLocal })),
    isNdotsSet,
  };
}

function found(directory: Directory, client: ContainerFact, name: string): string {
  return foundIn(directory.viewOf(client), name);
}

function foundIn(view: View, name: string): string {
  return answerTo(view, name, undefined, STRICT_BEHAVIOUR);
}
