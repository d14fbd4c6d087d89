// The records that the specification of Kubernetes requires of a cluster's DNS (version 1.1.0), by its sections and with its
// examples; those of SkyDNS in OpenShift; and what is no name.

import assert from "node:assert/strict";
import { test } from "node:test";

import { KUBERNETES_LIMITS } from "../../../src/features/kubernetes/limits.ts";
import { CLUSTER, clusterIp, headless, service, slice } from "./cluster-objects.ts";
import { ClusterWorld } from "./clustered.ts";

const NXDOMAIN = [3];
const EMPTY = [0];
const WEB = { name: "web", port: 80, protocol: "TCP" };

const world = new ClusterWorld([
  ...CLUSTER,
  // Both families: the addresses of a service, and slices of one each.
  clusterIp("dual.default", ["10.3.0.9", "fd00:3::9"], [WEB, { name: "dns", port: 53, protocol: "UDP" }, { port: 99 }]),
  headless("pets.default", [WEB]),
  slice("pets.default", {
    endpoints: [{ addresses: ["10.4.0.1"], hostname: "cat" }, { addresses: ["10.4.0.2"] }],
    ports: [{ ...WEB, port: 8080 }],
  }),
  slice("pets.default", {
    endpoints: [{ addresses: ["fd00:4::1"], hostname: "cat" }],
    ports: [{ ...WEB, port: 8080 }],
    slice: "v6",
  }),
  // One host name with several addresses.
  headless("twins.default"),
  slice("twins.default", {
    endpoints: [
      { addresses: ["10.5.0.1"], hostname: "twin" },
      { addresses: ["10.5.0.2"], hostname: "twin" },
    ],
  }),
  headless("empty.default"),
  headless("starting.default"),
  slice("starting.default", { endpoints: [{ addresses: ["10.6.0.1"], isReady: false }] }),
  headless("eager.default", [], { publishNotReadyAddresses: true }),
  slice("eager.default", { endpoints: [{ addresses: ["10.6.0.2"], isReady: false }] }),
  service("pending.default", { type: "ClusterIP", clusterIP: "" }),
  // As Kubernetes 1.19 and earlier have it.
  service("old.default", { clusterIP: "10.3.0.77", ports: [] }),
]);

const ROWS: readonly (readonly [string, string, readonly (string | number)[], string?])[] = [
  ["dns-version.cluster.local", "TXT", [0, "TXT 1.1.0"], "2.2"],
  ["kubernetes.default.svc.cluster.local", "A", [0, "A 10.3.0.1"], "2.3.1"],
  ["KUBERNETES.Default.svc.cluster.local", "A", [0, "A 10.3.0.1"], "2.1: case-insensitive"],
  ["kubernetes.default.svc.cluster.local", "AAAA", EMPTY, "2.3.1"],
  ["dual.default.svc.cluster.local", "A", [0, "A 10.3.0.9"], "2.3.1"],
  ["dual.default.svc.cluster.local", "AAAA", [0, "AAAA fd000003000000000000000000000009"], "2.3.1"],
  [
    "_https._tcp.kubernetes.default.svc.cluster.local",
    "SRV",
    [0, "SRV 0 100 443 kubernetes.default.svc.cluster.local"],
    "2.3.2",
  ],
  ["_dns._udp.dual.default.svc.cluster.local", "SRV", [0, "SRV 0 100 53 dual.default.svc.cluster.local"], "2.3.2"],
  ["_dns._tcp.dual.default.svc.cluster.local", "SRV", NXDOMAIN, "2.3.2: the protocol counts"],
  ["_web._tcp.mybank.dev.svc.cluster.local", "SRV", NXDOMAIN, "2.3.2: unnamed ports have none"],
  ["_tcp.dual.default.svc.cluster.local", "SRV", EMPTY, "2.3.2: names are below it"],
  ["_sctp.dual.default.svc.cluster.local", "SRV", NXDOMAIN, "2.3.2"],
  ["1.0.3.10.in-addr.arpa", "PTR", [0, "PTR kubernetes.default.svc.cluster.local"], "2.3.3"],
  [`9.${"0.".repeat(19)}3.0.0.0.0.0.d.f.ip6.arpa`, "PTR", ["forwarded"], "2.3.3: of another address"],
  [
    `9.0.0.0.${"0.0.0.0.".repeat(5)}3.0.0.0.0.0.d.f.ip6.arpa`,
    "PTR",
    [0, "PTR dual.default.svc.cluster.local"],
    "2.3.3",
  ],
  ["headless.default.svc.cluster.local", "A", [0, "A 10.3.0.100", "A 10.3.0.101", "A 10.3.0.102"], "2.4.1"],
  ["my-pet.headless.default.svc.cluster.local", "A", [0, "A 10.3.0.100"], "2.4.1"],
  ["10-3-0-102.headless.default.svc.cluster.local", "A", [0, "A 10.3.0.102"], "2.4.1: without a host name"],
  ["not-yet.headless.default.svc.cluster.local", "A", NXDOMAIN, "2.4.1: not ready"],
  ["cat.pets.default.svc.cluster.local", "A", [0, "A 10.4.0.1"], "2.4.1"],
  ["cat.pets.default.svc.cluster.local", "AAAA", [0, "AAAA fd000004000000000000000000000001"], "2.4.1"],
  ["twin.twins.default.svc.cluster.local", "A", [0, "A 10.5.0.1", "A 10.5.0.2"], "2.4.1: several addresses"],
  ["empty.default.svc.cluster.local", "A", NXDOMAIN, "2.4.1: no endpoint"],
  ["starting.default.svc.cluster.local", "A", NXDOMAIN, "2.4.1: none is ready"],
  ["eager.default.svc.cluster.local", "A", [0, "A 10.6.0.2"], "2.1: those that are not ready count"],
  [
    "_https._tcp.headless.default.svc.cluster.local",
    "SRV",
    [
      0,
      "SRV 0 100 443 10-3-0-102.headless.default.svc.cluster.local",
      "SRV 0 100 443 my-pet-2.headless.default.svc.cluster.local",
      "SRV 0 100 443 my-pet.headless.default.svc.cluster.local",
    ],
    "2.4.2",
  ],
  [
    "_web._tcp.pets.default.svc.cluster.local",
    "SRV",
    [0, "SRV 0 100 8080 10-4-0-2.pets.default.svc.cluster.local", "SRV 0 100 8080 cat.pets.default.svc.cluster.local"],
    "2.4.2: the endpoint's port, once for both families",
  ],
  ["100.0.3.10.in-addr.arpa", "PTR", [0, "PTR my-pet.headless.default.svc.cluster.local"], "2.4.3"],
  ["102.0.3.10.in-addr.arpa", "PTR", [0, "PTR 10-3-0-102.headless.default.svc.cluster.local"], "2.4.3"],
  ["103.0.3.10.in-addr.arpa", "PTR", ["forwarded"], "2.4.3: not ready"],
  ["2.0.244.10.in-addr.arpa", "PTR", ["forwarded"], "2.4.3: of no headless service"],
  ["foo.default.svc.cluster.local", "CNAME", [0, "CNAME www.example.com"], "2.5"],
  ["foo.default.svc.cluster.local", "A", ["forwarded"], "2.5: the target is asked elsewhere"],
  ["172-30-162-172.dev.pod.cluster.local", "A", [0, "A 172.30.162.172"], "2.6"],
  ["999-30-162-172.dev.pod.cluster.local", "A", NXDOMAIN, "2.6"],
  ["fd00--1.dev.pod.cluster.local", "AAAA", [0, "AAAA fd000000000000000000000000000001"], "2.6"],
  // Documents about clusters.
  ["kube-dns.kube-system.svc.cluster.local", "A", [0, "A 10.96.0.10"], "kubectl get svc"],
  ["mybank.dev.svc.cluster.local", "A", [0, "A 172.30.162.172"], "SkyDNS"],
  ["jenkins.dev.endpoints.cluster.local", "A", [0, "A 10.128.2.81", "A 10.131.1.70"], "SkyDNS"],
  ["mybank.dev.endpoints.cluster.local", "A", NXDOMAIN, "SkyDNS: no endpoints"],
  ["a.jenkins.dev.endpoints.cluster.local", "A", NXDOMAIN, "SkyDNS"],
  ["registry-console.default.svc.cluster.local", "A", [0, "A 172.30.9.9"], "SkyDNS"],
  // What other names need: a name above others exists, and nothing else does.
  ["cluster.local", "A", EMPTY],
  ["svc.cluster.local", "A", EMPTY],
  ["default.svc.cluster.local", "A", EMPTY],
  ["pod.cluster.local", "A", EMPTY],
  ["dev.pod.cluster.local", "A", EMPTY],
  ["nowhere.svc.cluster.local", "A", NXDOMAIN],
  ["nothing.default.svc.cluster.local", "A", NXDOMAIN],
  ["kubernetes.default.cluster.local", "A", NXDOMAIN],
  ["my-pet.kubernetes.default.svc.cluster.local", "A", NXDOMAIN],
  ["a.b.c.kubernetes.default.svc.cluster.local", "A", NXDOMAIN],
  ["pending.default.svc.cluster.local", "A", EMPTY],
  ["old.default.svc.cluster.local", "A", [0, "A 10.3.0.77"]],
  ["kubernetes.default.svc.cluster.other", "A", ["forwarded"]],
];

for (const [name, type, expected, section = "no names"] of ROWS)
  test(`${section}: ${name} ${type}`, () => assert.deepEqual(world.ask(name, type), expected));

test("addresses come with the records that point to their names; negative answers have an SOA record", () => {
  assert.deepEqual(world.additional("_https._tcp.kubernetes.default.svc.cluster.local", "SRV"), [
    "kubernetes.default.svc.cluster.local A 10.3.0.1",
  ]);
  assert.deepEqual(world.additional("_web._tcp.pets.default.svc.cluster.local", "SRV"), [
    "10-4-0-2.pets.default.svc.cluster.local A 10.4.0.2",
    "cat.pets.default.svc.cluster.local A 10.4.0.1",
    "cat.pets.default.svc.cluster.local AAAA fd000004000000000000000000000001",
  ]);
  const { authorities, flags } = world.reply("nothing.default.svc.cluster.local") ?? assert.fail();
  assert.equal(authorities.length, 1);
  assert.match(flags, /aa/);
  assert.equal(world.reply("mybank.dev.svc.cluster.local")?.answers[0]?.ttl, KUBERNETES_LIMITS.ttlSeconds);
});

test("changes: a service and its endpoints come, change and go", () => {
  const changing = new ClusterWorld(CLUSTER);
  const name = "late.default.svc.cluster.local";
  assert.deepEqual(changing.ask(name), NXDOMAIN);
  changing.put(clusterIp("late.default", ["10.3.0.50"]));
  assert.deepEqual(changing.ask(name), [0, "A 10.3.0.50"]);
  changing.put(clusterIp("late.default", ["10.3.0.51"]));
  assert.deepEqual(changing.ask("50.0.3.10.in-addr.arpa", "PTR"), ["forwarded"]);
  assert.deepEqual(changing.ask("51.0.3.10.in-addr.arpa", "PTR"), [0, "PTR late.default.svc.cluster.local"]);
  changing.remove(clusterIp("late.default", []));
  assert.deepEqual(changing.ask(name), NXDOMAIN);
  const endpoints = slice("headless.default", { endpoints: [{ addresses: ["10.3.0.9"], hostname: "new" }] });
  changing.put(endpoints);
  assert.deepEqual(changing.ask("headless.default.svc.cluster.local"), [0, "A 10.3.0.9"]);
  assert.deepEqual(changing.ask("100.0.3.10.in-addr.arpa", "PTR"), ["forwarded"]);
  changing.remove(endpoints);
  assert.deepEqual(changing.ask("headless.default.svc.cluster.local"), NXDOMAIN);
  // Its last service takes the namespace with it.
  changing.remove(clusterIp("kube-dns.kube-system", []));
  assert.deepEqual(changing.ask("kube-system.svc.cluster.local"), NXDOMAIN);
});

test("before the first list, and too long after the last, queries fail; in between the last known names are answered", () => {
  let nowMs = 0;
  const away = new ClusterWorld(undefined, { staleSecondsMax: 60 }, () => nowMs);
  const name = "kubernetes.default.svc.cluster.local";
  assert.deepEqual(away.ask(name), [2]);
  away.names.services.begin();
  for (const object of CLUSTER) if (object.kind === "Service") away.put(object);
  away.names.services.commit(0);
  assert.deepEqual(away.ask(name), [2], "endpoints are not known yet");
  away.list(CLUSTER);
  away.names.setCurrent(true);
  assert.deepEqual(away.ask(name), [0, "A 10.3.0.1"]);
  away.names.setCurrent(false);
  nowMs = 60_000;
  assert.deepEqual(away.ask(name), [0, "A 10.3.0.1"]);
  assert.deepEqual(away.ask("nothing.default.svc.cluster.local"), NXDOMAIN);
  nowMs = 60_001;
  assert.deepEqual(away.ask(name), [2]);
  assert.deepEqual(away.ask("1.0.3.10.in-addr.arpa", "PTR"), ["forwarded"]);
  away.names.setCurrent(true);
  assert.deepEqual(away.ask(name), [0, "A 10.3.0.1"]);
});
