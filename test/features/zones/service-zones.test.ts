// Names in zones as containers resolve them: the examples of SkyDNS, Kubernetes and OpenShift, what `visible` and routes
// leave of them, wildcards, several zones, negative answers, and what follows when containers and settings change.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { ContainerFact } from "../../../src/container/facts/fact.ts";
import { TYPE } from "../../support/scripted/builders.ts";
import { readName } from "../../unit/support/reply.ts";
import { ZoneWorld, aMember, servicesIn } from "../../unit/support/zone.ts";

const mybank = aMember("dev-mybank-1", { service: "mybank", on: { one: "172.30.162.172" } });
const jenkins = [1, 2].map((number) =>
  aMember(`dev-jenkins-${number}`, { service: "jenkins", number, on: { one: `172.30.7.${number}` } }),
);
const shop = aMember("shop-web-1", { service: "web", project: "shop", on: { one: "172.30.8.1" } });
const client = aMember("client", { on: { one: "172.30.0.9" } });
const world = new ZoneWorld([mybank, ...jenkins, shop, client]);

test("the examples of OpenShift: a service, its endpoints, an address of a project", () => {
  assert.deepEqual(world.addresses(client, "mybank.dev.svc.cluster.local"), [0, "172.30.162.172"]);
  assert.deepEqual(world.addresses(client, "jenkins.dev.endpoints.cluster.local"), [0, "172.30.7.1", "172.30.7.2"]);
  assert.deepEqual(world.addresses(client, "172-30-162-172.dev.pod.cluster.local"), [0, "172.30.162.172"]);
});

test("what a search list with ndots 5 tries before and after the right name is denied here, or is not of the zone", () => {
  for (const name of ["mybank.dev.svc.dev.svc.cluster.local", "mybank.dev.svc.svc.cluster.local"])
    assert.deepEqual(world.addresses(client, name), [3], name);
  assert.equal(world.ask(client, "mybank.dev.svc").kind, "deferred", "an absolute name outside of the zone");
  assert.equal(world.ask(client, "mybank.dev.svc.cluster.local.example").kind, "deferred");
  assert.equal(world.ask(client, "xcluster.local").kind, "deferred");
});

test("`*` and `any` stand for one label each", () => {
  const all = ["172.30.162.172", "172.30.7.1", "172.30.7.2"];
  for (const any of ["*", "any", "ANY"]) {
    assert.deepEqual(world.addresses(client, `${any}.dev.svc.cluster.local`), [0, ...all]);
    assert.deepEqual(world.addresses(client, `jenkins.${any}.svc.cluster.local`), [0, "172.30.7.1", "172.30.7.2"]);
    assert.deepEqual(world.addresses(client, `${any}.jenkins.dev.svc.cluster.local`), [0, "172.30.7.1", "172.30.7.2"]);
    assert.deepEqual(world.addresses(client, `2.${any}.dev.svc.cluster.local`), [0, "172.30.7.2"]);
    assert.deepEqual(world.addresses(client, `172-30-8-1.${any}.pod.cluster.local`), [0, "172.30.8.1"]);
    assert.deepEqual(world.addresses(client, `${any}.${any}.svc.cluster.local`), [0, ...all, "172.30.8.1"]);
    assert.deepEqual(world.addresses(client, `mybank.dev.${any}.cluster.local`), [3]);
  }
});

test("wildcards for ports and protocols", () => {
  const labels = { "io.dns11.ports": "http=80 metrics=9100 dns=53/udp" };
  const web = aMember("web", { service: "web", labels, on: { one: "172.30.1.1" } });
  const ports = new ZoneWorld([web, client]);
  const of = (name: string): string[] =>
    servicesIn(ports.reply(client, `${name}.web.dev.svc.cluster.local`, TYPE.SRV)).map(
      (text) => text.split(" ")[2] ?? "",
    );
  assert.deepEqual(of("*._tcp").toSorted(), ["80", "9100"]);
  assert.deepEqual(of("any.any").toSorted(), ["53", "80", "9100"]);
  assert.deepEqual(of("_dns.*"), ["53"]);
});

test("names that have others below them exist and are empty; all others do not; both have the SOA of the zone", () => {
  for (const [name, rcode] of [
    ["svc.cluster.local", 0],
    ["dev.svc.cluster.local", 0],
    ["dev.pod.cluster.local", 0],
    ["dns.cluster.local", 0],
    ["mybank.dev.svc.cluster.local", 0],
    ["nobody.svc.cluster.local", 3],
    ["nobody.dev.svc.cluster.local", 3],
    ["x.cluster.local", 3],
    ["x.dns-version.cluster.local", 3],
    ["a.b.c.d.e.f.svc.cluster.local", 3],
    ["172-30-162-172.shop.pod.cluster.local", 3],
    ["172-30-162-999.dev.pod.cluster.local", 3],
    ["dev.pods.cluster.local", 3],
  ] as const) {
    const { rcode: found, answers, authorities } = world.reply(client, name, TYPE.MX);
    assert.deepEqual([found, answers.length], [rcode, 0], name);
    assert.deepEqual(
      authorities.map(({ owner, type, ttl, data }) => [
        owner,
        type,
        ttl,
        readName(data, 0).text,
        data.readUInt32BE(data.length - 4),
      ]),
      [["cluster.local", TYPE.SOA, 5, "ns.dns.cluster.local", 5]],
      name,
    );
  }
});

const far = aMember("far", { service: "far", on: { two: ["10.2.0.1", "fd02::1"] } });
const both = aMember("both", { service: "both", on: { two: "10.2.0.2", one: "10.1.0.2" } });
const dark = aMember("dark", { service: "dark", on: { dark: "10.3.0.1" } });
const only6 = aMember("only6", { service: "only6", on: { two: [undefined, "fd02::6"] } });
const NETWORKS = [{ name: "one" }, { name: "two", project: "dev" }, { name: "dark", isInternal: true }];

test("a container is told addresses on its own networks only; projects and services without any do not exist", () => {
  const two = new ZoneWorld([client, far, both, dark], { networks: NETWORKS });
  assert.deepEqual(two.addresses(client, "far.dev.svc.cluster.local"), [3]);
  assert.deepEqual(two.addresses(client, "both.dev.endpoints.cluster.local"), [0, "10.1.0.2"]);
  assert.deepEqual(two.addresses(client, "10-2-0-2.dev.pod.cluster.local"), [3]);
  assert.deepEqual(two.addresses(client, "*.dev.svc.cluster.local"), [0, "10.1.0.2"]);
  assert.equal(two.ask(client, "2.0.2.10.in-addr.arpa", TYPE.PTR).kind, "deferred");
  const alone = aMember("alone", { on: { dark: "10.3.0.9" } });
  assert.deepEqual(two.addresses(alone, "dark.dev.svc.cluster.local"), [0, "10.3.0.1"]);
});

test("`visible` adds networks with a route: the own address comes first, and endpoints have all", () => {
  const labels = { "com.docker.compose.project": "dev" };
  const asker = aMember("asker", { labels, on: { one: "10.1.0.9" } });
  for (const visible of ["project", "all"] as const) {
    const two = new ZoneWorld([asker, client, far, both, dark, only6], { networks: NETWORKS, visible });
    assert.deepEqual(two.addresses(asker, "far.dev.svc.cluster.local"), [0, "10.2.0.1"], visible);
    assert.deepEqual(two.addresses(asker, "far.dev.svc.cluster.local", TYPE.AAAA), [0], "no gateway for IPv6");
    assert.deepEqual(two.addresses(asker, "both.dev.svc.cluster.local"), [0, "10.1.0.2"]);
    assert.deepEqual(two.addresses(asker, "both.dev.endpoints.cluster.local"), [0, "10.1.0.2", "10.2.0.2"]);
    assert.deepEqual(two.addresses(asker, "only6.dev.svc.cluster.local"), [3], "no address that it can reach");
    assert.deepEqual(two.addresses(asker, "dark.dev.svc.cluster.local"), [3], "an internal network");
    assert.equal(two.addresses(client, "far.dev.svc.cluster.local")[0], visible === "all" ? 0 : 3);
  }
});

test("labels place containers that Compose does not know, and go before its labels; those of an image do not count", () => {
  const place = { "io.dns11.project": "Tools", "io.dns11.service": "Git" };
  const labelled = aMember("labelled", { hostname: "forge.example.com", labels: place, on: { one: "10.1.0.3" } });
  const moved = aMember("moved", { service: "web", labels: place, on: { one: "10.1.0.4" } });
  const imageLabels = { labels: place, source: "known" } as const;
  const image = aMember("image", { imageLabels, on: { one: "10.1.0.5" } });
  const tools = (trustsImages: boolean): ZoneWorld => new ZoneWorld([client, labelled, moved, image], { trustsImages });
  assert.deepEqual(tools(false).addresses(client, "git.tools.svc.cluster.local"), [0, "10.1.0.3", "10.1.0.4"]);
  assert.deepEqual(tools(false).addresses(client, "forge.git.tools.svc.cluster.local"), [0, "10.1.0.3"]);
  assert.deepEqual(tools(true).addresses(client, "git.tools.svc.cluster.local"), [
    0,
    "10.1.0.3",
    "10.1.0.4",
    "10.1.0.5",
  ]);
  assert.deepEqual(tools(false).addresses(client, "web.dev.svc.cluster.local"), [3]);
});

test("a container of `docker compose run` is none of its service, unless its creator says so", () => {
  const once = { "com.docker.compose.oneoff": "True" };
  const withOnce = new ZoneWorld([
    client,
    aMember("web", { service: "web", on: { one: "10.1.0.3" } }),
    aMember("once", { service: "web", labels: once, on: { one: "10.1.0.4" } }),
    aMember("chosen", { service: "web", labels: { ...once, "io.dns11.service": "job" }, on: { one: "10.1.0.5" } }),
  ]);
  assert.deepEqual(withOnce.addresses(client, "web.dev.svc.cluster.local"), [0, "10.1.0.3"]);
  assert.deepEqual(withOnce.addresses(client, "1.web.dev.svc.cluster.local"), [0, "10.1.0.3"]);
  assert.deepEqual(withOnce.addresses(client, "job.dev.svc.cluster.local"), [0, "10.1.0.5"]);
});

test("published and exposed ports have their IANA names; an image's have none unless images are trusted", () => {
  const ports = { published: ["443/tcp", "12345/tcp"], exposed: ["443/tcp", "6379/tcp"], ofImage: ["80/tcp"] };
  const web = aMember("web", { service: "web", ports, on: { one: "10.1.0.3" } });
  for (const trustsImages of [false, true]) {
    const trusting = new ZoneWorld([client, web], { trustsImages });
    const rcodes = ["https", "redis", "http", "12345"].map(
      (name) => trusting.reply(client, `_${name}._tcp.web.dev.svc.cluster.local`, TYPE.SRV).rcode,
    );
    assert.deepEqual(rcodes, [0, 0, trustsImages ? 0 : 3, 3]);
  }
});

test("several zones have the same names, and addresses lead to the first", () => {
  const zones = new ZoneWorld([mybank, client], { zones: ["cluster.local", "docker.test"] });
  for (const zone of ["cluster.local", "docker.test"])
    assert.deepEqual(zones.addresses(client, `mybank.dev.svc.${zone}`), [0, "172.30.162.172"]);
  const { answers } = zones.reply(client, "172.162.30.172.in-addr.arpa", TYPE.PTR);
  assert.equal(readName(answers[0]?.data ?? Buffer.alloc(0), 0).text, "1.mybank.dev.svc.cluster.local");
});

test("names follow containers that start, change and stop, and the setting", () => {
  const live = new ZoneWorld([client]);
  const asked = (name = "mybank.dev.svc.cluster.local"): readonly unknown[] => live.addresses(client, name);
  assert.deepEqual(asked(), [3]);
  live.directory.putContainer(mybank);
  assert.deepEqual(asked(), [0, "172.30.162.172"]);
  const sick: ContainerFact = { ...mybank, health: "unhealthy" };
  live.directory.putContainer(sick);
  assert.deepEqual(asked(), [3]);
  assert.deepEqual(asked("mybank.dev.endpoints.cluster.local"), [0, "172.30.162.172"]);
  live.directory.removeContainer(mybank.id);
  assert.deepEqual(asked("mybank.dev.endpoints.cluster.local"), [3]);
  live.directory.putContainer(mybank);
  const without = new ZoneWorld([client, mybank], { zones: [] });
  assert.equal(without.ask(client, "mybank.dev.svc.cluster.local").kind, "deferred");
  assert.equal(without.reply(client, "172.162.30.172.in-addr.arpa", TYPE.PTR).answers.length, 1);
});

test("an answer that does not fit is truncated, and is whole over TCP; the additional section is only what fits", () => {
  const labels = { "io.dns11.ports": "http=80" };
  const many = Array.from({ length: 40 }, (_, n) =>
    aMember(`web-${n}`, { service: "web", number: n + 1, labels, on: { one: `10.1.1.${n + 1}` } }),
  );
  const crowd = new ZoneWorld([...many, client]);
  assert.match(crowd.reply(client, "web.dev.svc.cluster.local", TYPE.A, false).flags, /tc/);
  assert.equal(crowd.reply(client, "web.dev.svc.cluster.local").answers.length, 40);
  const cut = crowd.reply(client, "_http._tcp.web.dev.svc.cluster.local", TYPE.SRV, false);
  assert.match(cut.flags, /tc/);
  assert.deepEqual(cut.additionals, []);
  const few = new ZoneWorld([...many.slice(0, 8), client]);
  const part = few.reply(client, "_http._tcp.web.dev.svc.cluster.local", TYPE.SRV, false);
  assert.doesNotMatch(part.flags, /tc/);
  assert.equal(part.answers.length, 8);
  assert.ok(part.additionals.length < 8);
});

test("all names of a zone are listed that a container resolves, with the containers that have them", () => {
  const labels = { "io.dns11.ports": "http=80" };
  const web = aMember("web", { service: "web", labels, on: { one: ["10.1.0.1", "fd00::1"], two: "10.2.0.1" } });
  const sick = aMember("sick", { service: "sick", health: "unhealthy", on: { one: "10.1.0.2" } });
  const listing = new ZoneWorld([web, sick, far, client], { networks: NETWORKS });
  const all = listing.directory.viewOf(client).names.flatMap((source) => [...(source.list?.() ?? [])]);
  const names = all.filter(({ source }) => source.startsWith("zone "));
  assert.deepEqual(
    names.map(({ name, v4, v6, holders, source }) => [name, v4.join("."), v6.length, holders.length, source]),
    [
      ["web.dev.svc.cluster.local", "10.1.0.1", 16, 1, "zone cluster.local"],
      ["web.dev.endpoints.cluster.local", "10.1.0.1", 16, 1, "zone cluster.local"],
      ["1.web.dev.svc.cluster.local", "10.1.0.1", 16, 1, "zone cluster.local"],
      [`${web.hostname}.web.dev.svc.cluster.local`, "10.1.0.1", 16, 1, "zone cluster.local"],
      ["_http._tcp.web.dev.svc.cluster.local", "", 0, 1, "zone cluster.local"],
      ["sick.dev.endpoints.cluster.local", "10.1.0.2", 0, 1, "zone cluster.local"],
    ],
  );
});
