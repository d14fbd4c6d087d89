// Proves the names of one network: name to addresses, address to name, and that removed endpoints leave nothing behind.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as fc from "fast-check";

import { addressBytes, reverseLabels } from "../../../../../src/base/model/address.ts";
import { hashOf } from "../../../../../src/base/model/label-table.ts";
import {
  type Membership,
  NetworkNames,
  type NetworkPointer,
} from "../../../../../src/container/names/docker/network-names.ts";
import type { NameAddresses } from "../../../../../src/base/model/visible-names.ts";
import { presentation, wireLabels } from "../../../../../src/base/dns/name.ts";

const WEB: Membership = { names: ["Web", "shared", "c0ffee"], ipv4: "172.20.0.2", ipv6: "fd11::1:2" };
const DB: Membership = { names: ["db", "shared"], ipv4: "172.20.0.3", ipv6: undefined };

test("every name of a container resolves to its addresses", () => {
  const names = network({ web: WEB });
  for (const name of ["web", "shared", "c0ffee"]) {
    assert.deepEqual(addresses(named(names, name)), { v4: ["172.20.0.2"], v6: ["fd11:0:0:0:0:0:1:2"] });
  }
  assert.equal(named(names, "other"), undefined);
});

test("names are stored in lower case", () => {
  const names = network({ web: WEB });
  assert.equal(named(names, "Web"), undefined);
  assert.notEqual(named(names, "web"), undefined);
});

test("a dotted name is one name, of several labels", () => {
  const names = network({ mail: { names: ["mail.example.org"], ipv4: "172.20.0.9", ipv6: undefined } });
  assert.deepEqual(addresses(named(names, "mail.example.org"))?.v4, ["172.20.0.9"]);
  assert.equal(named(names, "mail"), undefined);
});

test("a name of several containers resolves to all of their addresses", () => {
  const names = network({ web: WEB, db: DB });
  assert.deepEqual(addresses(named(names, "shared")), {
    v4: ["172.20.0.2", "172.20.0.3"],
    v6: ["fd11:0:0:0:0:0:1:2"],
  });
});

test("an address that two endpoints have under one name is returned once", () => {
  const names = network({ web: WEB, twin: { ...WEB, names: ["shared"] } });
  assert.deepEqual(addresses(named(names, "shared"))?.v4, ["172.20.0.2"]);
  names.remove("web");
  assert.deepEqual(addresses(named(names, "shared"))?.v4, ["172.20.0.2"]);
});

test("a name that is given twice, in any letter case, is stored once", () => {
  const names = network({ web: { ...DB, names: ["web", "WEB", "web"] } });
  assert.deepEqual(addresses(named(names, "web"))?.v4, ["172.20.0.3"]);
  names.remove("web");
  assert.equal(named(names, "web"), undefined);
});

test("an endpoint without an address has no name", () => {
  const names = network({ web: { ...WEB, ipv4: undefined, ipv6: undefined } });
  assert.equal(named(names, "web"), undefined);
  assert.equal(names.size, 1);
});

test("an invalid address counts as none", () => {
  const names = network({ web: { ...WEB, ipv4: "invalid IP", ipv6: undefined } });
  assert.equal(named(names, "web"), undefined);
});

test("a container with only IPv6 is found, without IPv4 addresses", () => {
  const names = network({ web: { ...WEB, ipv4: undefined } });
  assert.deepEqual(addresses(named(names, "web")), { v4: [], v6: ["fd11:0:0:0:0:0:1:2"] });
});

test("names that no query can spell do not affect the others", () => {
  const names = network({ web: { ...DB, names: ["web", "a b", "x".repeat(64), ""] } });
  assert.deepEqual(addresses(named(names, "web"))?.v4, ["172.20.0.3"]);
});

test("an address points to NAME.NETWORK with the first name, in its own letter case", () => {
  const names = network({ web: WEB });
  for (const address of ["172.20.0.2", "fd11::1:2"]) assert.equal(pointsTo(names, address), "Web.One");
  assert.equal(pointsTo(names, "172.20.0.1"), undefined);
});

test("an address whose name does not fit on the wire is found, without a target", () => {
  const names = network({ web: { ...DB, names: ["x".repeat(64), "web"] } });
  const known = pointer(names, "172.20.0.3");
  assert.deepEqual([known?.target, known?.missingInDocker], [undefined, false]);
});

test("addresses of a container without names have no pointer", () => {
  const names = network({ web: { ...WEB, names: [] } });
  assert.equal(pointer(names, "172.20.0.2"), undefined);
});

test("an IPv6 address that starts or ends with two colons is marked as missing in Docker", () => {
  for (const [ipv6, onlyBetter] of [
    ["fd11::1:2", false],
    ["fd11::", true],
    ["::5", true],
  ] as const) {
    assert.equal(pointer(network({ web: { ...WEB, ipv6 } }), ipv6)?.missingInDocker, onlyBetter, ipv6);
  }
});

test("such an address is also found under Docker's wrong reverse name, with zeros on both sides, until it is removed", () => {
  const zeros = "0".repeat(48);
  for (const [ipv6, nibbles] of [
    ["fd11::", `${zeros}11df`],
    ["::5", `5000${zeros}`],
  ] as const) {
    const names = network({ web: { ...WEB, ipv6 } });
    const key = Buffer.from(nibbles.replaceAll(/./g, "\x01$&"));
    const found = names.pointer(key, key.length, hashOf(key));
    assert.deepEqual(
      [found?.missingInDocker, found?.target && presentation(found.target, 0, 99)],
      [false, "Web.One"],
      ipv6,
    );
    names.remove("web");
    assert.equal(names.pointer(key, key.length, hashOf(key)), undefined);
  }
});

test("of two endpoints with one address, the pointer moves to the one that stays", () => {
  const names = network({ web: WEB, twin: { ...WEB, names: ["twin"] } });
  assert.equal(pointsTo(names, "172.20.0.2"), "twin.One");
  names.remove("twin");
  assert.equal(pointsTo(names, "172.20.0.2"), "Web.One");
});

test("a rename removes the old name, keeps the others, and changes the pointer of the address", () => {
  const names = network({ web: WEB });
  names.put("web", { ...WEB, names: ["site", "shared", "c0ffee"] });
  assert.equal(named(names, "web"), undefined);
  assert.deepEqual(addresses(named(names, "site"))?.v4, ["172.20.0.2"]);
  assert.deepEqual(addresses(named(names, "shared"))?.v4, ["172.20.0.2"]);
  assert.equal(pointsTo(names, "172.20.0.2"), "site.One");
  assert.equal(names.size, 1);
});

test("a new address replaces the old one", () => {
  const names = network({ web: WEB });
  names.put("web", { ...WEB, ipv4: "172.20.0.77" });
  assert.deepEqual(addresses(named(names, "web"))?.v4, ["172.20.0.77"]);
  assert.equal(pointsTo(names, "172.20.0.2"), undefined);
});

test("removing an unknown endpoint changes nothing", () => {
  const names = network({ web: WEB });
  names.remove("stranger");
  assert.equal(names.size, 1);
  assert.notEqual(named(names, "web"), undefined);
});

test("after any sequence of joins, changes and leaves, the names are exactly those of the current endpoints", () => {
  const NAMES = ["a", "B", "b", "a.b", "c"];
  const V4 = ["10.0.0.1", "10.0.0.2"];
  const V6 = ["fd11::1:2", "::9"];
  const step = fc.record({
    holder: fc.constantFrom("one", "two", "three"),
    membership: fc.option(
      fc.record({
        names: fc.array(fc.constantFrom(...NAMES), { maxLength: 3 }),
        ipv4: fc.option(fc.constantFrom(...V4), { nil: undefined }),
        ipv6: fc.option(fc.constantFrom(...V6), { nil: undefined }),
      }),
      { nil: undefined },
    ),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 25 }), (steps) => {
      const names = new NetworkNames("One");
      const present = new Map<string, Membership>();
      for (const { holder, membership } of steps) {
        if (membership === undefined) names.remove(holder);
        else names.put(holder, membership);
        if (membership === undefined) present.delete(holder);
        else present.set(holder, membership);
      }
      assert.equal(names.size, present.size);
      for (const name of new Set(NAMES.map((text) => text.toLowerCase()))) {
        const holders = [...present.values()].filter((member) =>
          member.names.some((own) => own.toLowerCase() === name),
        );
        const v4 = holders.flatMap(({ ipv4 }) => (ipv4 === undefined ? [] : [ipv4]));
        const v6 = holders.flatMap(({ ipv6 }) => (ipv6 === undefined ? [] : [inFull(ipv6)]));
        const expected = { v4: [...new Set(v4)].toSorted(), v6: [...new Set(v6)].toSorted() };
        const isHeld = expected.v4.length + expected.v6.length > 0;
        assert.deepEqual(addresses(named(names, name)), isHeld ? expected : undefined, name);
      }
      for (const address of [...V4, ...V6]) {
        const owners = [...present.values()].filter(({ ipv4, ipv6 }) => ipv4 === address || ipv6 === address);
        const targets = owners.flatMap(({ names: [first] }) => (first === undefined ? [] : [`${first}.One`]));
        const actual = pointsTo(names, address);
        assert.ok(actual === undefined ? targets.length === 0 : targets.includes(actual), address);
      }
    }),
    { numRuns: 300 },
  );
});

function network(members: Readonly<Record<string, Membership>>): NetworkNames {
  const names = new NetworkNames("One");
  for (const [holder, membership] of Object.entries(members)) names.put(holder, membership);
  return names;
}

function named(names: NetworkNames, name: string): NameAddresses | undefined {
  const key = wireLabels(name) ?? assert.fail();
  return names.lookup(key, key.length, hashOf(key));
}

function pointer(names: NetworkNames, address: string): NetworkPointer | undefined {
  const key = reverseLabels(addressBytes(address) ?? assert.fail());
  return names.pointer(key, key.length, hashOf(key));
}

function pointsTo(names: NetworkNames, address: string): string | undefined {
  const target = pointer(names, address)?.target;
  if (target === undefined) return undefined;
  assert.equal(target.at(-1), 0, "a target ends with the root");
  return presentation(target, 0, target.length);
}

function addresses(of: NameAddresses | undefined): { v4: string[]; v6: string[] } | undefined {
  if (of === undefined) return undefined;
  const v4 = Array.from({ length: of.v4.length / 4 }, (_, index) => of.v4.slice(index * 4, index * 4 + 4).join("."));
  const v6 = Array.from({ length: of.v6.length / 16 }, (_, index) => hex(of.v6.slice(index * 16, index * 16 + 16)));
  return { v4: v4.toSorted(), v6: v6.toSorted() };
}

function inFull(address: string): string {
  return hex(addressBytes(address) ?? assert.fail());
}

function hex(bytes: Uint8Array): string {
  const groups = Buffer.from(bytes).toString("hex").match(/.{4}/g) ?? [];
  return groups.map((group) => Number.parseInt(group, 16).toString(16)).join(":");
}
