// Services whose members are on several machines: what other machines publish beside the containers of this one, as a
// container resolves it; what a machine that lies or breaks can do, and what happens while etcd is away.

import assert from "node:assert/strict";
import { test } from "node:test";

import { presentedLabels } from "../../../src/base/dns/name.ts";
import { LIMITS } from "../../../src/base/limits.ts";
import { DEFAULT_BEHAVIOUR } from "../../../src/base/model/behaviour.ts";
import { LOCAL_SOURCES } from "../../../src/base/model/local-source.ts";
import { StoredName } from "../../../src/base/model/label-table.ts";
import { RECORDS } from "../../../src/base/model/visible-names.ts";
import { DockerAnswerMemory } from "../../../src/query/client/docker-answer-memory.ts";
import { LocalNames } from "../../../src/query/lookup/local-names.ts";
import { RemoteMembers } from "../../../src/features/etcd/machines.ts";
import { TYPE } from "../../support/scripted/builders.ts";
import { readName } from "../../unit/support/reply.ts";
import { ZoneWorld, aMember, servicesIn } from "../../unit/support/zone.ts";
import { ETCD_LIMITS } from "../../../src/features/etcd/limits.ts";

const PREFIX = "/skydns/local/cluster/machine/";

interface Parts {
  readonly isNearestFirst?: boolean;
  readonly now?: () => number;
}

// Values by key below the machines' prefix; undefined: there was no list.
function remoteOf(values: Readonly<Record<string, unknown>> | undefined, parts: Parts = {}): RemoteMembers {
  const { isNearestFirst = false, now } = parts;
  const common = { prefix: "/skydns", zone: "cluster.local", machine: "m1", staleSecondsMax: 60 };
  const remote = new RemoteMembers({ ...common, isNearestFirst, now });
  if (values === undefined) return remote;
  remote.begin();
  for (const [key, value] of Object.entries(values)) put(remote, key, value);
  remote.commit();
  remote.setCurrent(true);
  return remote;
}

function put(remote: RemoteMembers, key: string, value: unknown): void {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  remote.put({ key: PREFIX + key, value: Buffer.from(text), lease: "1" });
}

function remove(remote: RemoteMembers, key: string): void {
  remote.remove(PREFIX + key);
}

let ids = 0;
const id = (): string => (ids += 1).toString(16).padStart(12, "0");

function member(address: string, more: object = {}): object {
  return { host: address, reach: "container", addresses: [address], hosts: ["1"], ports: ["http=80/tcp"], ...more };
}

const own = aMember("web", {
  service: "web",
  ports: { published: ["80/tcp"], exposed: [], ofImage: [] },
  on: { one: "172.30.0.2" },
});
const client = aMember("client", { on: { one: "172.30.0.9" } });
const NAME = "web.dev.svc.cluster.local";
const PORTS = `_http._tcp.${NAME}`;

function worldOf(remote: RemoteMembers, containers = [client, own]): ZoneWorld {
  return new ZoneWorld(containers, { remote });
}

function services(world: ZoneWorld): string[] {
  return servicesIn(world.reply(client, PORTS, TYPE.SRV));
}

test("a service has the members of all machines, this machine's own from its engine and not from etcd", () => {
  const world = worldOf(
    remoteOf({
      [`m1/svc/dev/web/${id()}`]: member("10.9.9.9"),
      [`m2/svc/dev/web/${id()}`]: member("10.0.2.1"),
      [`m3/svc/dev/web/${id()}`]: member("10.0.3.1"),
      [`m3/endpoints/dev/web/${id()}`]: member("10.0.3.2"),
      [`m2/svc/dev/api/${id()}`]: member("10.0.2.5"),
    }),
  );
  assert.deepEqual(new Set(world.addresses(client, NAME)), new Set([0, "10.0.2.1", "10.0.3.1", "172.30.0.2"]));
  assert.deepEqual(world.addresses(client, "web.dev.endpoints.cluster.local").length, 5, "also what is not ready");
  assert.deepEqual(world.addresses(client, "api.dev.svc.cluster.local"), [0, "10.0.2.5"]);
  assert.deepEqual(world.addresses(client, "10-0-2-5.dev.pod.cluster.local"), [0, "10.0.2.5"]);
  assert.deepEqual(services(world), [`0 100 80 1-m2.${NAME}`, `0 100 80 1-m3.${NAME}`, `0 100 80 1.${NAME}`]);
  assert.deepEqual(world.addresses(client, `1-m3.${NAME}`), [0, "10.0.3.1"]);
  assert.deepEqual(world.addresses(client, `1.${NAME}`), [0, "172.30.0.2"], "this machine's host name comes first");
  const pointer = world.reply(client, "1.3.0.10.in-addr.arpa", TYPE.PTR).answers[0];
  assert.equal(pointer && readName(pointer.data, 0).text, `1-m3.${NAME}`);
});

test("an answer in which another machine has a part is known as such, so that a policy asks for a rule", () => {
  const world = worldOf(
    remoteOf({
      "m2/host": { text: "dns11", addresses: ["10.0.0.2"] },
      [`m2/svc/dev/web/${id()}`]: member("10.0.2.1"),
    }),
    [client, own, aMember("db", { service: "db", on: { one: "172.30.0.3" } })],
  );
  const names = new LocalNames(DEFAULT_BEHAVIOUR);
  const sourceOf = (name: string): string => {
    names.begin(new DockerAnswerMemory());
    const labels = presentedLabels(name) ?? assert.fail();
    assert.equal(names.find(new StoredName(labels), world.directory.viewOf(client)), RECORDS, name);
    return LOCAL_SOURCES[names.source].key;
  };
  const foreign = [NAME, `1-m2.${NAME}`, PORTS, "10-0-2-1.dev.pod.cluster.local", "m2.machine.cluster.local"];
  for (const name of foreign) assert.equal(sourceOf(name), "other-machine", name);
  for (const name of [`1.${NAME}`, "db.dev.svc.cluster.local", "none.dev.svc.cluster.local", "dev.svc.cluster.local"])
    assert.equal(sourceOf(name), "zone", name);
});

test("the machine's address: with other ports it is no address of the service, and no pointer leads to a container", () => {
  const world = worldOf(
    remoteOf({
      "m2/host": { text: "dns11", addresses: ["10.0.0.2", "fd00::2"] },
      [`m2/svc/dev/web/${id()}`]: member("10.0.0.2", { reach: "ports", ports: ["http=8080/tcp"] }),
      [`m3/svc/dev/web/${id()}`]: member("10.0.0.3", { reach: "machine" }),
    }),
  );
  assert.deepEqual(new Set(world.addresses(client, NAME)), new Set([0, "10.0.0.3", "172.30.0.2"]));
  assert.ok(services(world).includes(`0 100 8080 1-m2.${NAME}`));
  assert.deepEqual(world.addresses(client, `1-m2.${NAME}`), [0, "10.0.0.2"], "the target of its port");
  assert.deepEqual(world.addresses(client, "m2.machine.cluster.local"), [0, "10.0.0.2"]);
  assert.equal(world.addresses(client, "m2.machine.cluster.local", TYPE.AAAA).length, 2);
  assert.deepEqual(world.addresses(client, "m9.machine.cluster.local"), [3]);
  assert.equal(world.ask(client, "2.0.0.10.in-addr.arpa", TYPE.PTR).kind, "deferred");
});

test("addresses on a swarm network are told to containers of that network, all others to containers with a way out", () => {
  const mesh = { name: "mesh", driver: "overlay", scope: "swarm", swarm: { isIngress: false, subnets: [] } };
  const onMesh = aMember("inside", { on: { mesh: "10.0.1.2" } });
  const [endpoint = assert.fail()] = onMesh.endpoints;
  const inside = { ...onMesh, endpoints: [{ ...endpoint, networkId: "mesh", ipv4Gateway: "10.0.1.1" }] };
  const on = (networks: object, more: object = {}): object => ({
    reach: "swarm",
    inside: { ports: ["http=80/tcp"], networks },
    ...more,
  });
  const remote = remoteOf({ [`m2/svc/dev/api/${id()}`]: member("10.0.1.7", on({ mesh: ["10.0.1.7"] })) });
  const networks = [{ name: "one" }, { ...mesh, id: "mesh" }];
  const world = new ZoneWorld([client, inside], { remote, networks });
  const [api, web] = ["api.dev.svc.cluster.local", "web.dev.svc.cluster.local"];
  assert.deepEqual(world.addresses(client, api), [3]);
  assert.deepEqual(world.addresses(inside, api), [0, "10.0.1.7"]);
  // With published ports as well, each client is told one way: never both, and never none.
  const key = `m2/svc/dev/web/${id()}`;
  const both = on({ mesh: ["10.0.1.8"], other: ["10.0.5.8"] }, { reach: "ports", ports: ["http=8080/tcp"] });
  put(remote, key, member("192.0.2.2", both));
  assert.deepEqual(world.addresses(inside, web), [0, "10.0.1.8"]);
  assert.deepEqual(servicesIn(world.reply(inside, `_http._tcp.${web}`, TYPE.SRV)), [`0 100 80 1-m2.${web}`]);
  assert.deepEqual(world.addresses(client, web), [0], "its port has another number there");
  assert.deepEqual(services(world), [`0 100 8080 1-m2.${web}`]);
  assert.deepEqual(world.addresses(client, `1-m2.${web}`), [0, "192.0.2.2"]);
  remove(remote, key);
  for (const each of [client, inside]) assert.deepEqual(world.addresses(each, web), [3], "all ways are gone");
  const dark = aMember("dark", { on: { dark: "10.3.0.1" } });
  const far = remoteOf({ [`m2/svc/dev/api/${id()}`]: member("10.0.2.1") });
  const closed = new ZoneWorld([dark], { remote: far, networks: [{ name: "dark", isInternal: true }] });
  assert.deepEqual(closed.addresses(dark, "api.dev.svc.cluster.local"), [3]);
});

test("nearest first: this machine's members before all others, by order and by priority", () => {
  const values = Object.fromEntries(
    [1, 2, 3, 4].map((at) => [`m2/svc/dev/web/${id()}`, member(`10.0.2.${at}`, { hosts: [`h${at}`] })]),
  );
  const world = worldOf(remoteOf(values, { isNearestFirst: true }));
  for (let round = 0; round < 20; round++) {
    const reply = world.reply(client, NAME);
    assert.deepEqual([...(reply.answers[0]?.data ?? [])], [172, 30, 0, 2]);
    assert.equal(reply.answers.length, 5);
  }
  assert.deepEqual(
    services(world).map((text) => text.split(" ")[0]),
    ["0", "10", "10", "10", "10"],
  );
});

test("changes of a key are followed, and a list replaces everything", () => {
  const remote = remoteOf({});
  const world = worldOf(remote);
  const key = `m2/svc/dev/api/${id()}`;
  const name = "api.dev.svc.cluster.local";
  assert.deepEqual(world.addresses(client, name), [3]);
  put(remote, key, member("10.0.2.1"));
  assert.deepEqual(world.addresses(client, name), [0, "10.0.2.1"]);
  put(remote, key, member("10.0.2.2"));
  assert.deepEqual(world.addresses(client, name), [0, "10.0.2.2"]);
  put(remote, key, "{");
  assert.deepEqual([world.addresses(client, name), remote.report.skipped], [[3], 1]);
  put(remote, key, member("10.0.2.3"));
  assert.deepEqual([world.addresses(client, name), remote.report.skipped], [[0, "10.0.2.3"], 0]);
  remove(remote, key);
  assert.deepEqual([world.addresses(client, name), remote.report.machines], [[3], 0]);
  put(remote, key, member("10.0.2.4"));
  remote.begin();
  assert.deepEqual(world.addresses(client, name), [0, "10.0.2.4"], "until the list is complete");
  remote.commit();
  assert.deepEqual(world.addresses(client, name), [3]);
});

test("while etcd is away: last known members, then this machine's only, and nothing is denied by guess", () => {
  let nowMs = 0;
  const now = (): number => nowMs;
  const remote = remoteOf(
    { [`m2/svc/dev/web/${id()}`]: member("10.0.2.1"), [`m2/svc/dev/api/${id()}`]: member("10.0.2.5") },
    { now },
  );
  const world = worldOf(remote);
  remote.setCurrent(false);
  nowMs = 60_000;
  assert.equal(world.addresses(client, NAME).length, 3);
  nowMs = 60_001;
  assert.deepEqual(world.addresses(client, NAME), [0, "172.30.0.2"], "its own members are right whatever happens");
  assert.deepEqual(
    world.addresses(client, "api.dev.svc.cluster.local"),
    [2],
    "it is not known whether there are others",
  );
  remote.setCurrent(true);
  assert.equal(world.addresses(client, NAME).length, 3);
  const before = worldOf(remoteOf(undefined));
  assert.deepEqual(
    [before.addresses(client, NAME), before.addresses(client, "api.dev.svc.cluster.local")],
    [[0, "172.30.0.2"], [2]],
  );
});

test("what a machine may not claim is skipped and named, one key each, and the others of it stay", () => {
  const manyNetworks = Object.fromEntries([..."abcde"].map((each) => [each, ["10.0.2.1"]]));
  const bad = {
    [`m2/svc/dev/api/${id()}`]: member("127.0.0.1"),
    [`m2/svc/dev/api/a${id()}`]: member("10.0.2.1"),
    [`m2/svc/dev/../${id()}`]: member("10.0.2.1"),
    [`m2/svc//api/${id()}`]: member("10.0.2.1"),
    [`m2/svc/dev/any/${id()}`]: member("10.0.2.1"),
    [`m2/pod/dev/api/${id()}`]: member("10.0.2.1"),
    [`m2/svc/dev/api/${id()}/more`]: member("10.0.2.1"),
    [`M2/svc/dev/api/${id()}`]: member("10.0.2.1"),
    [`m2/svc/dev/b/${id()}`]: member("169.254.169.254"),
    [`m2/svc/dev/c/${id()}`]: member("10.0.2.1", { addresses: [] }),
    [`m2/svc/dev/d/${id()}`]: member("10.0.2.1", { addresses: ["10.0.2.1", "10.0.2.2"] }),
    [`m2/svc/dev/e/${id()}`]: member("10.0.2.1", { hosts: ["a.b"] }),
    [`m2/svc/dev/f/${id()}`]: member("10.0.2.1", { hosts: Array(5).fill("a") }),
    [`m2/svc/dev/g/${id()}`]: member("10.0.2.1", { ports: ["http=99999/tcp"] }),
    [`m2/svc/dev/h/${id()}`]: member("10.0.2.1", { reach: "magic" }),
    [`m2/svc/dev/i/${id()}`]: member("10.0.2.1", { inside: { networks: { "../x": ["10.0.2.1"] } } }),
    [`m2/svc/dev/m/${id()}`]: member("10.0.2.1", { inside: [] }),
    [`m2/svc/dev/n/${id()}`]: member("10.0.2.1", { inside: { networks: { mesh: ["127.0.0.1"] } } }),
    [`m2/svc/dev/o/${id()}`]: member("10.0.2.1", { inside: { networks: manyNetworks } }),
    [`m2/svc/dev/p/${id()}`]: member("10.0.2.1", { reach: "swarm" }),
    [`m2/svc/dev/j/${id()}`]: "x".repeat(ETCD_LIMITS.memberBytes + 1),
    [`m2/svc/dev/k/${id()}`]: "[]",
    [`m2/svc/dev/l/${id()}`]: member("10.0.2.1", { addresses: "10.0.2.1" }),
    "m2/host": { addresses: ["0.0.0.0"] },
  };
  const remote = remoteOf({ ...bad, [`m2/svc/dev/api/${id()}`]: member("10.0.2.9") });
  assert.equal(remote.report.skipped, Object.keys(bad).length);
  assert.equal(remote.report.members, 1);
  assert.deepEqual(worldOf(remote).addresses(client, "api.dev.svc.cluster.local"), [0, "10.0.2.9"]);
});

test("a machine that publishes too much fills its share only, and no answer alone", () => {
  const remote = remoteOf({});
  for (let at = 0; at < ETCD_LIMITS.machineMembers + 5; at++)
    put(remote, `m2/svc/dev/web/${id()}`, member("10.0.2.1", { hosts: [] }));
  put(remote, `m3/svc/dev/web/${id()}`, member("10.0.3.1"));
  assert.deepEqual([remote.report.refused, remote.report.members], [5, ETCD_LIMITS.machineMembers + 1]);
  const world = worldOf(remote);
  const found = world.addresses(client, NAME);
  assert.equal(found.length, 1 + 1 + LIMITS.machineAnswerMembers + 1);
  assert.ok(found.includes("172.30.0.2") && found.includes("10.0.3.1"));
  for (let at = 0; at < ETCD_LIMITS.machines + 5; at++) put(remote, `x${at}/svc/dev/web/${id()}`, member("10.0.4.1"));
  assert.ok(remote.report.machines <= ETCD_LIMITS.machines);
});

test("the share of a machine is one of the answer: a host name of any of its members is found", () => {
  const all = Array.from({ length: LIMITS.machineAnswerMembers + 6 }, (_, at) => at + 1);
  const values = Object.fromEntries(
    all.flatMap((at) => [
      [`m2/endpoints/dev/web/${id()}`, member(`10.0.3.${at}`, { hosts: [`starting-${at}`] })],
      [`m2/svc/dev/web/${id()}`, member(`10.0.2.${at}`, { hosts: [`web-${at}`, "any-web"] })],
    ]),
  );
  const world = worldOf(remoteOf(values), [client]);
  for (const at of all)
    assert.deepEqual(world.addresses(client, `web-${at}.${NAME}`), [0, `10.0.2.${at}`], `web-${at}`);
  for (const name of [NAME, `any-web.${NAME}`, "any-web.*.*.svc.cluster.local"])
    assert.equal(world.addresses(client, name).length, 1 + LIMITS.machineAnswerMembers, name);
  assert.deepEqual(world.addresses(client, `starting-1.${NAME}`), [3]);
});

test("host names follow the changes of a key", () => {
  const [one, two] = [`m2/svc/dev/web/${id()}`, `m3/svc/dev/web/${id()}`];
  const remote = remoteOf({ [one]: member("10.0.2.1"), [two]: member("10.0.3.1") });
  const world = worldOf(remote, [client]);
  const ask = (host: string): unknown => world.addresses(client, `${host}.${NAME}`);
  assert.deepEqual(ask("1"), [0, "10.0.2.1", "10.0.3.1"]);
  put(remote, one, member("10.0.2.1", { hosts: ["2"] }));
  assert.deepEqual([ask("1"), ask("2"), ask("1-m2")], [[0, "10.0.3.1"], [0, "10.0.2.1"], [3]]);
  remove(remote, two);
  assert.deepEqual([ask("1"), ask("2"), ask("2-m2")], [[3], [0, "10.0.2.1"], [0, "10.0.2.1"]]);
  remove(remote, one);
  assert.deepEqual([ask("2"), world.addresses(client, NAME)], [[3], [3]]);
});

test("an address of a local container, claimed elsewhere, changes none of Docker's names", () => {
  const remote = remoteOf({ [`m2/svc/dev/evil/${id()}`]: member("172.30.0.9") });
  const pointer = worldOf(remote).reply(client, "9.0.30.172.in-addr.arpa", TYPE.PTR).answers[0];
  assert.equal(pointer && readName(pointer.data, 0).text, "client.one");
});
