// What a machine publishes of its containers: at which address others reach each, which keys and values that makes, and
// what follows when containers, networks and settings change.

import assert from "node:assert/strict";
import { test } from "node:test";

import { ETCD_LIMITS } from "../../../src/features/etcd/limits.ts";
import type { PublishPolicy } from "../../../src/features/etcd/feature.ts";
import { Publication } from "../../../src/features/etcd/publishing.ts";
import type { ContainerFact, NetworkFact } from "../../../src/container/facts/fact.ts";
import { aNetworkFact } from "../../support/scripted/builders.ts";
import { PUBLISH_DEFAULTS } from "./defaults.ts";
import { aMember } from "../../unit/support/zone.ts";

const ADDRESS = "192.0.2.7";
const NETWORKS: readonly Partial<NetworkFact>[] = [
  { name: "one" },
  { name: "wire", driver: "macvlan" },
  { name: "routed" },
  { name: "mesh", driver: "overlay", scope: "swarm", swarm: { isIngress: false, subnets: [] } },
  { name: "ingress", driver: "overlay", scope: "swarm", swarm: { isIngress: true, subnets: [] } },
];

interface WorldParts extends Partial<PublishPolicy> {
  readonly trustsImages?: boolean;
}

class World {
  readonly containers = new Map<string, ContainerFact>();
  readonly changed: (string | undefined)[] = [];
  readonly publication: Publication;

  constructor(parts: WorldParts, ...containers: readonly ContainerFact[]) {
    const networks = new Map(NETWORKS.map(aNetworkFact).map((each) => [each.id, each]));
    this.publication = new Publication(
      settings(parts),
      (id) => networks.get(id),
      () => this.containers.values(),
    );
    this.publication.onChange = (key) => this.changed.push(key);
    for (const each of containers) this.put(each);
  }

  put(fact: ContainerFact): void {
    this.containers.set(fact.id, fact);
    this.publication.put(fact);
  }

  // The values by key, without what is the same in all.
  get found(): Readonly<Record<string, object>> {
    return Object.fromEntries(
      [...this.publication.wanted].map(([key, text]) => {
        const { ttl, machine, ...value } = JSON.parse(text) as { readonly ttl: number; readonly machine: string };
        assert.deepEqual([ttl, machine], [5, "m1"]);
        return [key, value];
      }),
    );
  }

  why(fact: ContainerFact): string {
    const published = this.publication.of(fact.id);
    if (published === undefined || !("leftOut" in published)) return "";
    const { code, message, remedy } = published.leftOut;
    return `${code}: ${message}. ${remedy}`;
  }
}

function settings({ trustsImages = false, ...policy }: WorldParts): ConstructorParameters<typeof Publication>[0] {
  return {
    policy: { zone: "cluster.test", machine: "m1", ...PUBLISH_DEFAULTS, addresses: [ADDRESS], ...policy },
    machine: "m1",
    labels: { trustsImages, servers: "container" },
    ttlSeconds: 5,
  };
}

type Ports = ContainerFact["ports"];

// Published as `docker run -p` does it: HOSTPORT:PORT.
function onHost(...ports: readonly string[]): Ports {
  const bound = ports.map((text) => {
    const [port = "", hostPort = "", address = "0.0.0.0"] = text.split(":").toReversed();
    return { port: `${port}/tcp`, address, hostPort: Number(hostPort) };
  });
  return { published: bound.map(({ port }) => port), exposed: [], ofImage: [], bound };
}

function keyIn(fact: ContainerFact, service: string, branch = "svc"): string {
  return `${branch}/dev/${service}/${fact.id.slice(0, 12)}`;
}

const at = (of: ContainerFact, address: string, reach: string, ports: readonly string[] = []): object => ({
  host: address,
  ...(ports.length > 0 && { port: Number(/=(\d+)/.exec(ports[0] ?? "")?.[1]) }),
  reach,
  addresses: [address],
  hosts: ["1", of.hostname],
  ports,
});

// Where containers of the swarm network reach it.
const inside = (address: string, ports: readonly string[] = []): object => ({
  inside: { ports, networks: { [aNetworkFact({ name: "mesh" }).id]: [address] } },
});

test("a published port: the machine's address, with the number of the port there", () => {
  const same = aMember("same", { service: "same", ports: onHost("80:80"), on: { one: "172.18.0.2" } });
  const other = aMember("other", { service: "other", ports: onHost("8080:80"), on: { one: "172.18.0.3" } });
  const mixed = aMember("mixed", {
    service: "mixed",
    ports: onHost("80:80", "8443:443"),
    on: { one: "172.18.0.4" },
  });
  assert.deepEqual(new World({}, same, other, mixed).found, {
    [keyIn(same, "same")]: at(same, ADDRESS, "machine", ["http=80/tcp"]),
    [keyIn(other, "other")]: at(other, ADDRESS, "ports", ["http=8080/tcp"]),
    [keyIn(mixed, "mixed")]: at(mixed, ADDRESS, "ports", ["http=80/tcp", "https=8443/tcp"]),
  });
});

test("an address of the machine is that of a container only if a port is bound there", () => {
  const bound = (name: string, ...addresses: readonly string[]): ContainerFact => {
    const ports = addresses.map((address) => ({ port: "80/tcp", address, hostPort: 80 }));
    return aMember(name, { service: name, ports: { ...onHost(), bound: ports }, on: { one: "172.18.0.2" } });
  };
  const facts = [
    bound("four", "0.0.0.0"),
    bound("six", "::"),
    bound("both", "0.0.0.0", "::"),
    bound("own", "fd00:0::7"),
    bound("other", "fd00::8"),
  ] as const;
  const world = new World({ addresses: [ADDRESS, "fd00::7"] }, ...facts);
  const addresses = facts.map((fact) => {
    const published = world.publication.of(fact.id);
    return published !== undefined && "addresses" in published ? published.addresses : undefined;
  });
  assert.deepEqual(addresses, [[ADDRESS], ["fd00::7"], [ADDRESS, "fd00::7"], ["fd00::7"], undefined]);
});

test("its own address on macvlan, routed and swarm networks; the last only for containers of that network", () => {
  const wire = aMember("wire", {
    service: "wire",
    ports: onHost("8080:80"),
    on: { one: "172.18.0.2", wire: "10.0.0.9" },
  });
  const routed = aMember("routed", { service: "routed", on: { routed: ["172.19.0.2", "fd00::2"] } });
  const mesh = aMember("mesh", { service: "mesh", on: { mesh: "10.0.1.4" } });
  const both = aMember("both", { service: "both", on: { mesh: "10.0.1.5", wire: "10.0.0.8" } });
  const world = new World({ routedNetworks: ["routed"] }, wire, routed, mesh, both);
  assert.deepEqual(world.found, {
    [keyIn(wire, "wire")]: at(wire, "10.0.0.9", "container", ["http=80/tcp"]),
    [keyIn(routed, "routed")]: { ...at(routed, "172.19.0.2", "container"), addresses: ["172.19.0.2", "fd00::2"] },
    [keyIn(mesh, "mesh")]: { ...at(mesh, "10.0.1.4", "swarm"), ...inside("10.0.1.4") },
    [keyIn(both, "both")]: at(both, "10.0.0.8", "container"),
  });
});

test("on a swarm network with published ports: its own address for that network, the machine's for all others", () => {
  const web = aMember("web", { service: "web", ports: onHost("8080:80"), on: { mesh: "10.0.1.4" } });
  assert.deepEqual(new World({}, web).found, {
    [keyIn(web, "web")]: { ...at(web, ADDRESS, "ports", ["http=8080/tcp"]), ...inside("10.0.1.4", ["http=80/tcp"]) },
  });
  const local = aMember("local", { service: "local", ports: onHost("127.0.0.1:80:80"), on: { mesh: "10.0.1.5" } });
  assert.deepEqual(new World({}, local).found, {
    [keyIn(local, "local")]: {
      ...at(local, "10.0.1.5", "swarm", ["http=80/tcp"]),
      ...inside("10.0.1.5", ["http=80/tcp"]),
    },
  });
});

test("what others do not reach is left out, with the reason", () => {
  const hidden = aMember("hidden", { service: "hidden", on: { one: "172.18.0.2" } });
  const loopback = aMember("loop", { service: "loop", ports: onHost("127.0.0.1:80:80"), on: { one: "172.18.0.3" } });
  const unnamed = aMember("unnamed", { service: "unnamed", ports: onHost("9998:9999"), on: { one: "172.18.0.4" } });
  const ingress = aMember("ingress", { service: "in", on: { ingress: "10.0.9.4" } });
  const alone = aMember("alone", { on: { wire: "10.0.0.7" } });
  const world = new World({}, hidden, loopback, unnamed, ingress, alone);
  assert.deepEqual(world.found, {});
  for (const each of [hidden, ingress]) assert.match(world.why(each), /^PUBLISH_NO_PORT: .*no published port.*-p/);
  assert.match(world.why(loopback), /^PUBLISH_OTHER_ADDRESS: .*at 127\.0\.0\.1 only, not at 192\.0\.2\.7/);
  assert.match(world.why(unnamed), /^PUBLISH_UNNAMED_PORTS: .*io\.dns11\.ports/);
  assert.equal(world.publication.leftOut, 4);
  assert.match(world.why(alone), /^PUBLISH_NO_SERVICE: .*io\.dns11\.service/, "not counted");
  const nowhere = new World(
    { addresses: [] },
    aMember("web", { service: "web", ports: onHost("80:80"), on: { one: "172.18.0.5" } }),
  );
  assert.equal(nowhere.publication.leftOut, 1);
  nowhere.publication.setConnectedAddress("127.0.0.1");
  assert.deepEqual(nowhere.found, {}, "no address of one machine");
  nowhere.publication.setConnectedAddress("192.0.2.99");
  assert.deepEqual(
    Object.values(nowhere.found).map((each) => (each as { host: string }).host),
    ["192.0.2.99"],
  );
});

test("not ready it is below endpoints, and one change has both keys", () => {
  const web = aMember("web", { service: "web", on: { wire: "10.0.0.9" } });
  const world = new World({}, web);
  world.changed.length = 0;
  world.put({ ...web, health: "unhealthy" });
  assert.deepEqual(Object.keys(world.found), [keyIn(web, "web", "endpoints")]);
  assert.deepEqual(new Set(world.changed), new Set([keyIn(web, "web", "endpoints"), keyIn(web, "web")]));
  world.changed.length = 0;
  world.put({ ...web, health: "unhealthy" });
  assert.deepEqual(world.changed, [], "nothing has changed");
  world.publication.remove(web.id);
  assert.deepEqual(world.found, {});
});

test("labels of an image publish nothing unless images are trusted, and no label makes another key", () => {
  const place = { "io.dns11.project": "tools", "io.dns11.service": "git" };
  const imageLabels = { labels: place, source: "known" } as const;
  const image = aMember("image", { imageLabels, on: { wire: "10.0.0.9" } });
  assert.deepEqual(new World({}, image).found, {});
  assert.deepEqual(Object.keys(new World({ trustsImages: true }, image).found), [
    `svc/tools/git/${image.id.slice(0, 12)}`,
  ]);
  for (const name of [
    "..",
    "a/b",
    "../m2/svc/shop/web",
    "a.b",
    "",
    "*",
    "any",
    "x".repeat(64),
    "a\0b",
    "a\nb",
    "\u{202e}a",
  ]) {
    const labels = { "io.dns11.project": name, "io.dns11.service": "git" };
    assert.deepEqual(
      new World({}, aMember("evil", { labels, on: { wire: "10.0.0.9" } })).found,
      {},
      JSON.stringify(name),
    );
  }
  const labels = { "io.dns11.project": "Tools", "io.dns11.service": "GIT" };
  const upper = aMember("upper", { labels, on: { wire: "10.0.0.9" } });
  assert.deepEqual(Object.keys(new World({}, upper).found), [`svc/tools/git/${upper.id.slice(0, 12)}`]);
});

test("too many containers: the others are left out, and those that are published stay", () => {
  const world = new World({});
  const many = Array.from({ length: ETCD_LIMITS.machineMembers + 2 }, (_, index) => ({
    ...aMember("web", { service: "web", on: { wire: "10.0.0.9" } }),
    id: index.toString(16).padStart(12, "0").padEnd(64, "0"),
  }));
  for (const each of many) world.put(each);
  assert.deepEqual([world.publication.wanted.size, world.publication.leftOut], [ETCD_LIMITS.machineMembers, 2]);
  world.put({ ...(many[0] as ContainerFact), isPaused: true });
  assert.equal(world.publication.wanted.size, ETCD_LIMITS.machineMembers);
});

test("other settings: everything is gone through again, and nothing without publishing", () => {
  const web = aMember("web", { service: "web", ports: onHost("80:80"), on: { routed: "172.19.0.2" } });
  const world = new World({}, web);
  assert.deepEqual(world.found, { [keyIn(web, "web")]: at(web, ADDRESS, "machine", ["http=80/tcp"]) });
  world.publication.configure(settings({ routedNetworks: ["routed"] }));
  assert.deepEqual(world.found, { [keyIn(web, "web")]: at(web, "172.19.0.2", "container", ["http=80/tcp"]) });
  assert.equal(world.changed.at(-1), undefined, "all may have changed");
  world.publication.configure({ ...settings({}), policy: undefined });
  assert.deepEqual(world.found, {});
});
