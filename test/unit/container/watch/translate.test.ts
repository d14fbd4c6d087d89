// Proves the translation of the engine's JSON into facts, for the versions that differ.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { ContainerJson, ListedJson } from "../../../../src/container/watch/engine-json.ts";
import {
  containerFact,
  isOnDefaultBridgeOnly,
  isUp,
  knownFingerprint,
  listedFingerprint,
  networkFact,
} from "../../../../src/container/watch/translate.ts";

type EndpointJson = NonNullable<NonNullable<ContainerJson["NetworkSettings"]>["Networks"]>[string];

const ID = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const SHORT_ID = "0123456789ab";
const FILES = { nameservers: { kind: "unknown" }, extraHosts: [] } as const;

// As reported by 20.10: no DNSNames, and the short id among the aliases.
const OLD_ENDPOINT: EndpointJson = {
  Links: ["db:store"],
  Aliases: ["shared", SHORT_ID],
  NetworkID: "net1",
  EndpointID: "end1",
  Gateway: "172.20.0.1",
  IPAddress: "172.20.0.2",
  IPv6Gateway: "",
  GlobalIPv6Address: "",
};

// As reported by 28.
const NEW_ENDPOINT: EndpointJson = {
  ...OLD_ENDPOINT,
  Aliases: ["shared"],
  DNSNames: ["web", "shared", SHORT_ID, "host1"],
  GwPriority: 7,
  GlobalIPv6Address: "fd11::2",
  IPv6Gateway: "fd11::1",
};

const CONTAINER: ContainerJson = {
  Id: ID,
  Name: "/web",
  State: { Running: true, Paused: false, Restarting: false, Pid: 4711, StartedAt: "2026-01-01T00:00:00Z" },
  ResolvConfPath: "/var/lib/docker/containers/0123/resolv.conf",
  Config: { Hostname: "host1", Labels: { colour: "blue" }, ExposedPorts: { "80/tcp": {}, "443/tcp": {} } },
  HostConfig: { NetworkMode: "one", Dns: [], DnsOptions: [], PortBindings: { "80/tcp": [] } },
  NetworkSettings: { SandboxKey: "/var/run/docker/netns/0123", Networks: { one: NEW_ENDPOINT } },
};

test("a container of a current engine becomes a fact", () => {
  assert.deepEqual(containerFact(CONTAINER, FILES), {
    id: ID,
    name: "web",
    isPaused: false,
    health: undefined,
    pid: 4711,
    sandboxKey: "/var/run/docker/netns/0123",
    networkMode: "one",
    hostname: "host1",
    domainName: "",
    ports: { published: ["80/tcp"], exposed: [], ofImage: ["80/tcp", "443/tcp"] },
    labels: {},
    imageLabels: { labels: { colour: "blue" }, source: "unknown" },
    startedAt: "2026-01-01T00:00:00Z",
    resolvConfPath: "/var/lib/docker/containers/0123/resolv.conf",
    kindSearch: undefined,
    ...FILES,
    endpoints: [
      {
        endpointId: "end1",
        networkId: "net1",
        networkName: "one",
        names: ["web", "shared", SHORT_ID, "host1"],
        links: ["db:store"],
        ipv4: "172.20.0.2",
        ipv6: "fd11::2",
        ipv4Gateway: "172.20.0.1",
        ipv6Gateway: "fd11::1",
        gatewayPriority: 7,
      },
    ],
    onDefaultBridge: undefined,
  });
});

test("on the default bridge a container has the names that other networks would give it, and its links", () => {
  const bridge = { ...OLD_ENDPOINT, Links: null, Aliases: null };
  const json = {
    ...CONTAINER,
    HostConfig: { NetworkMode: "default", Links: ["/db:/web/store"] },
    NetworkSettings: { Networks: { bridge } },
  };
  assert.deepEqual(containerFact(json, FILES).onDefaultBridge, {
    names: ["web", SHORT_ID, "host1"],
    links: ["/db:/web/store"],
    ipv4: "172.20.0.2",
    ipv6: undefined,
  });
  assert.equal(isOnDefaultBridgeOnly(json), true);
  for (const Networks of [
    {},
    { one: NEW_ENDPOINT },
    { bridge, one: NEW_ENDPOINT },
    { bridge: { ...bridge, EndpointID: "" } },
  ])
    assert.equal(isOnDefaultBridgeOnly({ ...json, NetworkSettings: { Networks } }), false);
});

test("without DNSNames the names are composed: name, aliases, short id, hostname, each once", () => {
  assert.deepEqual(namesOf(OLD_ENDPOINT), ["web", "shared", SHORT_ID, "host1"]);
  assert.deepEqual(namesOf({ ...OLD_ENDPOINT, Aliases: null }), ["web", SHORT_ID, "host1"]);
  assert.deepEqual(namesOf({ ...OLD_ENDPOINT, Aliases: ["web", "host1"] }), ["web", "host1", SHORT_ID]);
  assert.deepEqual(namesOf({ ...OLD_ENDPOINT, DNSNames: null }), ["web", "shared", SHORT_ID, "host1"]);
});

test("a hostname equal to the short id, as by default, is one name", () => {
  const json = { ...CONTAINER, Config: { Hostname: SHORT_ID }, NetworkSettings: { Networks: { one: OLD_ENDPOINT } } };
  assert.deepEqual(containerFact(json, FILES).endpoints[0]?.names, ["web", "shared", SHORT_ID]);
});

test("an empty list of DNSNames is used as it is", () => {
  assert.deepEqual(namesOf({ ...OLD_ENDPOINT, DNSNames: [] }), []);
});

test("a container of an old engine has neither IPv6 nor a gateway priority", () => {
  const [endpoint] = factWith(OLD_ENDPOINT).endpoints;
  assert.deepEqual(
    [endpoint?.ipv6, endpoint?.ipv6Gateway, endpoint?.ipv4Gateway, endpoint?.gatewayPriority],
    [undefined, undefined, "172.20.0.1", 0],
  );
});

test("a network that is only configured, or not joined yet, has no endpoint", () => {
  for (const endpoint of [{}, { ...OLD_ENDPOINT, EndpointID: "" }, { ...OLD_ENDPOINT, NetworkID: "" }]) {
    assert.deepEqual(factWith(endpoint).endpoints, []);
  }
});

test("an invalid address counts as none", () => {
  for (const text of ["", "invalid IP", "<nil>", "172.20.0.2/16"]) {
    const [endpoint] = factWith({ ...NEW_ENDPOINT, IPAddress: text, Gateway: text }).endpoints;
    assert.deepEqual([endpoint?.ipv4, endpoint?.ipv4Gateway], [undefined, undefined], text);
  }
});

test("a nearly empty container becomes a fact, too", () => {
  const fact = containerFact({ Id: ID, Name: "web" }, FILES);
  assert.deepEqual(
    [fact.name, fact.pid, fact.sandboxKey, fact.networkMode, fact.labels, fact.endpoints],
    ["web", 0, "", "", {}, []],
  );
  const nulls = { ...CONTAINER, Config: { Labels: null }, NetworkSettings: { Networks: null } };
  assert.deepEqual(containerFact(nulls, FILES).labels, {});
});

test("a container is up while it runs, paused or not, and not between two starts", () => {
  assert.deepEqual(
    [
      up({ Running: true }),
      up({ Running: true, Paused: true }),
      up({ Running: true, Restarting: true }),
      up({ Running: false }),
      isUp({ Id: ID, Name: "web" }),
    ],
    [true, true, false, false, false],
  );
});

test("a network becomes a fact, by default local and not internal", () => {
  const bare = { id: "net1", name: "one", driver: "", scope: "local", isInternal: false, project: undefined };
  assert.deepEqual(networkFact({ Id: "net1", Name: "one" }), bare);
  assert.deepEqual(networkFact({ Id: "net1", Name: "one", Driver: "overlay", Scope: "swarm", Internal: true }), {
    ...bare,
    driver: "overlay",
    scope: "swarm",
    isInternal: true,
    swarm: { isIngress: false, subnets: [] },
  });
  const Labels = { "com.docker.compose.project": "shop" };
  assert.deepEqual(networkFact({ Id: "net1", Name: "one", Labels }), { ...bare, project: "shop" });
});

test("a network keeps its containers apart by what Docker reads as no, or a macvlan by its mode", () => {
  const icc = "com.docker.network.bridge.enable_icc";
  const by = (Driver: string, Options: Record<string, string> | null): string | undefined =>
    networkFact({ Id: "net1", Name: "one", Driver, Options }).apartBy;
  for (const no of ["false", "False", "FALSE", "f", "F", "0"])
    assert.equal(by("bridge", { [icc]: no }), `${icc}=false`, no);
  for (const yes of ["true", "1", "", "no", "fALSE"]) assert.equal(by("bridge", { [icc]: yes }), undefined, yes);
  assert.equal(by("bridge", null), undefined);
  assert.equal(by("overlay", { [icc]: "false" }), undefined);
  assert.equal(by("macvlan", { macvlan_mode: "private" }), "macvlan_mode=private");
  assert.equal(by("macvlan", { macvlan_mode: "bridge" }), undefined);
  assert.equal(by("bridge", { macvlan_mode: "private" }), undefined);
});

const LISTED: ListedJson = {
  Id: ID,
  Names: ["/client/alias", "/web"],
  State: "running",
  NetworkSettings: { Networks: { one: NEW_ENDPOINT } },
};

test("the fingerprint of a list entry equals that of the fact, until something changes", () => {
  const known = knownFingerprint(containerFact(CONTAINER, FILES));
  assert.equal(listedFingerprint(LISTED), known);
  const two = { ...NEW_ENDPOINT, EndpointID: "end2" };
  for (const [what, listed] of Object.entries<ListedJson>({
    "another name": { ...LISTED, Names: ["/site"] },
    "a pause": { ...LISTED, State: "paused" },
    "another address": {
      ...LISTED,
      NetworkSettings: { Networks: { one: { ...NEW_ENDPOINT, IPAddress: "172.20.0.9" } } },
    },
    "another IPv6 address": {
      ...LISTED,
      NetworkSettings: { Networks: { one: { ...NEW_ENDPOINT, GlobalIPv6Address: "" } } },
    },
    "a network left and joined again": { ...LISTED, NetworkSettings: { Networks: { one: two } } },
    "one network more": { ...LISTED, NetworkSettings: { Networks: { one: NEW_ENDPOINT, two } } },
    "no network": { ...LISTED, NetworkSettings: { Networks: {} } },
    "a list without networks": { ...LISTED, NetworkSettings: { Networks: null } },
  })) {
    assert.notEqual(listedFingerprint(listed), known, what);
  }
});

test("neither the order of networks nor one that is only configured changes the fingerprint", () => {
  const two = { ...NEW_ENDPOINT, EndpointID: "end2" };
  const fact = containerFact({ ...CONTAINER, NetworkSettings: { Networks: { one: NEW_ENDPOINT, two } } }, FILES);
  const listed = { ...LISTED, NetworkSettings: { Networks: { three: {}, two, one: NEW_ENDPOINT } } };
  assert.equal(listedFingerprint(listed), knownFingerprint(fact));
});

function up(state: NonNullable<ContainerJson["State"]>): boolean {
  return isUp({ ...CONTAINER, State: state });
}

function factWith(endpoint: EndpointJson): ReturnType<typeof containerFact> {
  return containerFact({ ...CONTAINER, NetworkSettings: { Networks: { one: endpoint } } }, FILES);
}

function namesOf(endpoint: EndpointJson): readonly string[] | undefined {
  return factWith(endpoint).endpoints[0]?.names;
}
