// Proves the host's names: every form of a name and any name below it, several containers with one name, and that no question
// breaks the search or costs more than it must.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as fc from "fast-check";

import { HostZone } from "../../../../../src/container/names/host-domain/host-zone.ts";
import { DEFAULT_BEHAVIOUR } from "../../../../../src/base/model/behaviour.ts";
import { DENIED, FOUND, MISS, NameSearch } from "../../../../../src/base/model/visible-names.ts";
import { reverseLabels } from "../../../../../src/base/model/address.ts";
import { hashOf } from "../../../../../src/base/model/label-table.ts";
import { presentation } from "../../../../../src/base/dns/name.ts";
import type { ContainerFact } from "../../../../../src/container/facts/fact.ts";
import { aContainer, anEndpoint, aQuery } from "../../../../support/scripted/builders.ts";
import { placed } from "../../../support/reply.ts";

const COMPOSED = {
  "com.docker.compose.project": "shop",
  "com.docker.compose.service": "front",
  "com.docker.compose.container-number": "2",
};

function zoneOf(...facts: readonly ContainerFact[]): HostZone {
  const zone = new HostZone("docker");
  for (const fact of facts) zone.put(fact, [], fact.endpoints);
  return zone;
}

function find(zone: HostZone, name: string, trace: string[] = []): [number, string] {
  const search = new NameSearch(DEFAULT_BEHAVIOUR);
  search.trace = { record: (_, why) => trace.push(why) };
  const result = zone.find(placed(aQuery({ name })).question, search);
  return [result, result === FOUND ? search.addresses.v4.join(".") : ""];
}

const WEB = aContainer({ labels: COMPOSED, endpoints: [anEndpoint({ names: ["web", "alias"], networkName: "net" })] });
const HIT = [FOUND, "172.20.0.2"];

test("a container has its names, alone and with its network, and those of its Compose service", () => {
  const zone = zoneOf(WEB);
  const names = ["web", "alias", "web.net", "alias.net", "front.shop", "2.front.shop"];
  for (const name of names) {
    assert.deepEqual(find(zone, `${name}.docker`), HIT, name);
    assert.deepEqual(find(zone, `a.b.${name}.DOCKER`), HIT, `below ${name}`);
  }
  for (const name of ["front", "net", "shop", "3.front.shopx", "xweb", "web.other"])
    assert.equal(find(zone, `${name}.docker`)[0], DENIED, name);
});

test("all names are listed with their containers, each once", () => {
  const both = aContainer({ id: "other", name: "b", endpoints: [anEndpoint({ names: ["web"], ipv4: "172.20.0.3" })] });
  const listed = [...zoneOf(WEB, both).list()];
  const web = listed.find(({ name }) => name === "web.docker");
  assert.deepEqual(web?.holders, [WEB.id, "other"]);
  assert.equal(web.v4.length, 8);
  const names = listed.map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
  assert.ok(names.includes("2.front.shop.docker") && names.includes("alias.net.docker"));
});

test("names outside the domain are somebody else's, and the domain itself exists", () => {
  const zone = zoneOf(WEB);
  for (const name of ["web", "web.net", "web.dockers", "web.docker.com", "xdocker"])
    assert.equal(find(zone, name)[0], MISS, name);
  assert.deepEqual(find(zone, "docker"), [FOUND, ""]);
});

test("the longest name wins over a name below a shorter one", () => {
  const api = aContainer({ id: "a", name: "api", endpoints: [anEndpoint({ names: [], ipv4: "172.20.0.9" })] });
  assert.deepEqual(find(zoneOf(WEB, api), "web.one.docker")[0], DENIED);
  assert.deepEqual(find(zoneOf(WEB, api), "x.api.one.docker"), [FOUND, "172.20.0.9"]);
});

test("several containers with one name are all given, and the trace names them", () => {
  const other = aContainer({ id: "b", name: "b", endpoints: [anEndpoint({ names: ["alias"], ipv4: "172.20.0.3" })] });
  const trace: string[] = [];
  assert.deepEqual(find(zoneOf(WEB, other), "alias.docker", trace), [FOUND, "172.20.0.2.172.20.0.3"]);
  assert.deepEqual(trace, [
    '"alias" below "docker" is web (network net), b (network one); 2 have this name, and all their addresses are given',
  ]);
});

test("the labels of an image are not taken for those of Compose", () => {
  const fact = aContainer({ imageLabels: { labels: COMPOSED, source: "known" } });
  assert.equal(find(zoneOf(fact), "front.shop.docker")[0], DENIED);
});

test("an address points to the container's own name, and nothing stays when the container goes", () => {
  const zone = zoneOf(WEB);
  const labels = reverseLabels(Uint8Array.of(172, 20, 0, 2));
  const target = zone.pointer(labels, labels.length, hashOf(labels))?.target as Uint8Array;
  assert.equal(presentation(Buffer.from(target), 0, target.length - 1), "web.docker");
  zone.remove(WEB.id, WEB.endpoints);
  assert.equal(zone.pointer(labels, labels.length, hashOf(labels)), undefined);
  assert.equal(find(zone, "web.docker")[0], DENIED);
});

test("more addresses than a small UDP answer holds are a part of them, never truncated", () => {
  const facts = Array.from({ length: 60 }, (_, i) =>
    aContainer({ id: `c${i}`, name: `c${i}`, endpoints: [anEndpoint({ names: ["all"], ipv4: `172.20.1.${i}` })] }),
  );
  const addresses = find(zoneOf(...facts), "all.docker")[1].split(".").length / 4;
  assert.ok(addresses >= 20 && addresses <= 30, String(addresses));
  const long = `${"x".repeat(63)}.${"y".repeat(63)}.${"z".repeat(63)}.all.docker`;
  assert.ok(find(zoneOf(...facts), long)[1].split(".").length / 4 <= 17);
});

test("any question gets an answer, and only a name of the domain is found", () => {
  const zone = zoneOf(WEB);
  const label = fc
    .string({ minLength: 1, maxLength: 8 })
    .filter((text) => !text.includes(".") && /^[ -~]+$/.test(text));
  fc.assert(
    fc.property(fc.array(label, { maxLength: 20 }), fc.boolean(), (labels, isBelow) => {
      const name = [...labels, ...(isBelow ? ["docker"] : [])].join(".");
      const [result] = find(zone, name);
      const isOurs = name === "docker" || name.toLowerCase().endsWith(".docker");
      assert.equal(result === MISS, !isOurs);
    }),
  );
});
