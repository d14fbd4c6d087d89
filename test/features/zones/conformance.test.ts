// Follows the Kubernetes DNS specification 1.1.0, section by section, as far as it has a meaning for containers: every
// service is headless. docs/service-names.md lists the sections that differ.

import assert from "node:assert/strict";
import { test } from "node:test";

import { TYPE } from "../../support/scripted/builders.ts";
import { addressesIn, readName } from "../../unit/support/reply.ts";
import { ZoneWorld, aMember, servicesIn } from "../../unit/support/zone.ts";

const PORTS = { "io.dns11.ports": "https=443,dns=53/udp" };
const pet = aMember("pet", {
  service: "headless",
  project: "default",
  number: 1,
  hostname: "my-pet",
  labels: PORTS,
  on: { one: ["10.3.0.100", "2001:db8::1"] },
});
const second = aMember("second", {
  service: "headless",
  project: "default",
  number: 2,
  labels: PORTS,
  on: { one: ["10.3.0.2", "2001:db8::2"] },
});
const unready = aMember("unready", {
  service: "headless",
  project: "default",
  number: 3,
  health: "starting",
  labels: PORTS,
  on: { one: ["10.3.0.3", "2001:db8::3"] },
});
const down = aMember("down", { service: "down", project: "default", health: "unhealthy", on: { one: "10.3.0.4" } });
const paused = aMember("paused", { service: "paused", project: "default", isPaused: true, on: { one: "10.3.0.5" } });
const client = aMember("client", { on: { one: "10.3.0.9" } });
const world = new ZoneWorld([pet, second, unready, down, paused, client]);
const SERVICE = "headless.default.svc.cluster.local";

test("2.1: comparisons ignore letter case", () => {
  assert.deepEqual(world.addresses(client, "Headless.DEFAULT.Svc.Cluster.LOCAL"), [0, "10.3.0.100", "10.3.0.2"]);
});

test("2.2: dns-version is a TXT record with the version of the schema", () => {
  const { answers, flags } = world.reply(client, "dns-version.cluster.local", TYPE.TXT);
  assert.deepEqual(
    answers.map(({ type, data }) => [type, data.toString("latin1")]),
    [[TYPE.TXT, "\x051.1.0"]],
  );
  assert.equal(flags, "qr aa rd ra");
});

test("2.4.1: a service has the addresses of its ready endpoints, of each family", () => {
  assert.deepEqual(world.addresses(client, SERVICE), [0, "10.3.0.100", "10.3.0.2"]);
  assert.deepEqual(world.addresses(client, SERVICE, TYPE.AAAA), [
    0,
    "2001:0db8:0000:0000:0000:0000:0000:0001",
    "2001:0db8:0000:0000:0000:0000:0000:0002",
  ]);
});

test("2.4.1: without ready endpoints the answer is NXDOMAIN", () => {
  for (const service of ["down", "paused", "nothing"])
    assert.deepEqual(world.addresses(client, `${service}.default.svc.cluster.local`), [3], service);
});

test("2.4.1: an endpoint has a name with its hostname, also with the number that identifies it", () => {
  assert.deepEqual(world.addresses(client, `my-pet.${SERVICE}`), [0, "10.3.0.100"]);
  assert.deepEqual(world.addresses(client, `1.${SERVICE}`), [0, "10.3.0.100"]);
  assert.deepEqual(world.addresses(client, `2.${SERVICE}`), [0, "10.3.0.2"]);
  assert.deepEqual(world.addresses(client, `3.${SERVICE}`), [3], "not ready");
  assert.deepEqual(world.addresses(client, `my-pet.${SERVICE}`, TYPE.AAAA), [
    0,
    "2001:0db8:0000:0000:0000:0000:0000:0001",
  ]);
});

test("2.4.1: of several endpoints with one hostname each has a record", () => {
  const twin = aMember("twin", {
    service: "headless",
    project: "default",
    hostname: "my-pet",
    on: { one: "10.3.0.7" },
  });
  const both = new ZoneWorld([pet, twin, client]);
  assert.deepEqual(both.addresses(client, `my-pet.${SERVICE}`), [0, "10.3.0.100", "10.3.0.7"]);
});

test("2.4.2: a named port has an SRV record for each ready endpoint, with addresses in the additional section", () => {
  const reply = world.reply(client, `_https._tcp.${SERVICE}`, TYPE.SRV);
  assert.deepEqual(servicesIn(reply), [`0 100 443 2.${SERVICE}`, `0 100 443 my-pet.${SERVICE}`]);
  assert.deepEqual(
    reply.additionals.map(({ owner, type, data }) => `${owner} ${type} ${data.length}`),
    [`my-pet.${SERVICE} 1 4`, `my-pet.${SERVICE} 28 16`, `2.${SERVICE} 1 4`, `2.${SERVICE} 28 16`],
  );
  assert.deepEqual(servicesIn(world.reply(client, `_dns._udp.${SERVICE}`, TYPE.SRV)).length, 2);
});

test("2.4.2: unnamed ports, other protocols and other names have none", () => {
  for (const name of [`_dns._tcp.${SERVICE}`, `_http._tcp.${SERVICE}`, `_443._tcp.${SERVICE}`, `_x._sctp.${SERVICE}`])
    assert.equal(world.reply(client, name, TYPE.SRV).rcode, 3, name);
  assert.deepEqual(world.addresses(client, `_tcp.${SERVICE}`, TYPE.SRV), [0], "names are below it");
  assert.deepEqual(world.addresses(client, `_https._tcp.${SERVICE}`, TYPE.A), [0], "no addresses");
});

test("2.4.3: the address of a ready endpoint leads back to its name, of both families", () => {
  const nibbles = "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa";
  for (const [name, target] of [
    ["100.0.3.10.in-addr.arpa", `my-pet.${SERVICE}`],
    [nibbles, `my-pet.${SERVICE}`],
    ["2.0.3.10.in-addr.arpa", `2.${SERVICE}`],
    // Docker's own name, because it is not ready.
    ["3.0.3.10.in-addr.arpa", "unready.one"],
  ] as const) {
    const { answers } = world.reply(client, name, TYPE.PTR);
    assert.deepEqual(
      answers.map(({ data }) => readName(data, 0).text),
      [target],
      name,
    );
  }
});

test("3: the records beyond the specification are additions to it", () => {
  const all = ["10.3.0.100", "10.3.0.2", "10.3.0.3"];
  assert.deepEqual(world.addresses(client, "headless.default.endpoints.cluster.local"), [0, ...all]);
  assert.deepEqual(world.addresses(client, "10-3-0-3.default.pod.cluster.local"), [0, "10.3.0.3"]);
  assert.deepEqual(world.addresses(client, "ns.dns.cluster.local"), [0, "127.0.0.11"]);
  const soa = world.reply(client, "cluster.local", TYPE.SOA);
  const ns = world.reply(client, "cluster.local", TYPE.NS);
  assert.equal(readName(soa.answers[0]?.data ?? Buffer.alloc(0), 0).text, "ns.dns.cluster.local");
  assert.equal(readName(ns.answers[0]?.data ?? Buffer.alloc(0), 0).text, "ns.dns.cluster.local");
  assert.deepEqual(addressesIn(world.reply(client, "cluster.local")), []);
});
