/**
 * The containers that other machines reach: at which address each is answered, and which do not exist for them.
 */
import assert from "node:assert/strict";
import { test } from "node:test";

import { DEFAULT_BEHAVIOUR } from "../../../src/base/model/behaviour.ts";
import { PublishedNames } from "../../../src/features/lan/lan.ts";
import type { ContainerFact } from "../../../src/container/facts/fact.ts";
import { TYPE, aClient, aNetworkFact, aQuery, aRoute } from "../../support/scripted/builders.ts";
import { type Reply, addressesIn, replyOnce } from "../../unit/support/reply.ts";
import { aMember } from "../../unit/support/zone.ts";

const [HOST, HOST6] = ["192.0.2.7", "2001:0db8:0000:0000:0000:0000:0000:0007"];
const NETWORKS = [{ name: "one" }, { name: "wire", driver: "macvlan" }].map(aNetworkFact);

function published(...bound: readonly (readonly [address: string, port: number])[]): ContainerFact["ports"] {
  const ports = bound.map(([address, hostPort]) => ({ port: "80/tcp", address, hostPort }));
  return { published: ["80/tcp"], exposed: [], ofImage: [], bound: ports };
}

function namesOf(...facts: readonly ContainerFact[]): PublishedNames {
  const names = new PublishedNames({
    domain: "docker",
    zones: ["cluster.local"],
    labels: { trustsImages: false, servers: "container" },
    addresses: [HOST, HOST6],
    networkOf: (id) => NETWORKS.find((each) => each.id === id),
  });
  for (const each of facts) names.put(each);
  return names;
}

function reply(names: PublishedNames, name: string, type: number): Reply {
  const refused = { ...aRoute("", []), isRefused: true };
  const client = aClient({ names: names.sources, upstreams: { routes: [refused], isNdotsSet: false } });
  return replyOnce(aQuery({ name, type }), { client, behaviour: DEFAULT_BEHAVIOUR });
}

function ask(names: PublishedNames, name: string, type: number = TYPE.A): readonly string[] {
  return addressesIn(reply(names, name, type));
}

test("a published port leads to the machine, by the families in which it is bound there", () => {
  const names = namesOf(
    aMember("both", { on: { one: "172.18.0.2" }, ports: published(["0.0.0.0", 80], ["::", 80]) }),
    aMember("four", { on: { one: "172.18.0.3" }, ports: published([HOST, 81]) }),
    aMember("other", { on: { one: "172.18.0.4" }, ports: published(["192.0.2.8", 80]) }),
    aMember("none", { on: { one: "172.18.0.5" } }),
  );
  assert.deepEqual([ask(names, "both.docker"), ask(names, "both.docker", TYPE.AAAA)], [[HOST], [HOST6]]);
  assert.deepEqual([ask(names, "four.docker"), ask(names, "four.docker", TYPE.AAAA)], [[HOST], []]);
  for (const name of ["other.docker", "none.docker"]) assert.equal(reply(names, name, TYPE.A).rcode, 3, name);
});

test("a container on a macvlan network has its own address, beside that of the machine", () => {
  const names = namesOf(
    aMember("wired", { on: { wire: "192.0.2.30" } }),
    aMember("mixed", { on: { one: "172.18.0.2", wire: "192.0.2.31" }, ports: published(["0.0.0.0", 80]) }),
  );
  assert.deepEqual(ask(names, "wired.docker"), ["192.0.2.30"]);
  assert.deepEqual(ask(names, "mixed.docker").toSorted(), ["192.0.2.31", HOST]);
});

test("containers of one service have the machine's address once, in the domain and in the zone", () => {
  const replica = (number: number): ContainerFact =>
    aMember(`shop-web-${number}`, {
      ...{ service: "web", project: "shop", number },
      on: { one: `172.18.0.${number + 1}` },
      ports: { ...published(), bound: [{ port: `${80 + number}/tcp`, address: "0.0.0.0", hostPort: 80 + number }] },
    });
  const names = namesOf(replica(1), replica(2));
  assert.deepEqual(ask(names, "web.shop.docker"), [HOST]);
  assert.deepEqual(ask(names, "web.shop.svc.cluster.local"), [HOST]);
});

test("addresses have no names, and what is not below the domain is refused", () => {
  const names = namesOf(aMember("web", { on: { one: "172.18.0.2" }, ports: published(["0.0.0.0", 80]) }));
  for (const name of ["7.2.0.192.in-addr.arpa", "2.0.18.172.in-addr.arpa"])
    assert.equal(reply(names, name, TYPE.PTR).rcode, 5, name);
  assert.equal(reply(names, "web", TYPE.A).rcode, 5);
  assert.equal(reply(names, "example.com", TYPE.A).rcode, 5);
  for (const name of ["localhost", "x.onion"]) assert.equal(reply(names, name, TYPE.A).rcode, 5, name);
});

test("a container that is gone has no name, and one that changes has its new address", () => {
  const names = namesOf(
    aMember("web", { service: "web", on: { one: "172.18.0.2" }, ports: published(["0.0.0.0", 80]) }),
  );
  const closed = aMember("web", { service: "web", on: { one: "172.18.0.2" } });
  names.put(closed);
  for (const name of ["web.docker", "web.dev.svc.cluster.local"]) assert.deepEqual(ask(names, name), [], name);
  names.put(aMember("web", { service: "web", on: { one: "172.18.0.2" }, ports: published([HOST, 80]) }));
  for (const name of ["web.docker", "web.dev.svc.cluster.local"]) assert.deepEqual(ask(names, name), [HOST], name);
  names.remove(closed.id);
  for (const name of ["web.docker", "web.dev.svc.cluster.local"]) assert.deepEqual(ask(names, name), [], name);
});
