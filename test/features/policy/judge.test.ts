// Proves what the code that decides says: about names and patterns, types and long names, new names, addresses, several policies, and
// what an operator allows.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as fc from "fast-check";

import { wireLabels } from "../../../src/base/dns/name.ts";
import { CLASS } from "../../../src/base/dns/record.ts";
import { parseType } from "../../../src/base/dns/record-type.ts";
import { addressBytes, addressText, unmapped, reverseLabels } from "../../../src/base/model/address.ts";
import { FOREIGN_SOURCES, LOCAL_SOURCE } from "../../../src/base/model/local-source.ts";
import { readPattern } from "../../../src/base/model/name-pattern.ts";
import { StoredName } from "../../../src/base/model/label-table.ts";
import { CompiledPolicy, isPrivate } from "../../../src/features/policy/judge/compiled-policy.ts";
import { type JudgedQuestion, NamespacePolicy } from "../../../src/features/policy/judge/namespace-policy.ts";
import type { Refusal } from "../../../src/features/policy/judge/refusal.ts";
import { type WrittenPolicy, policyOf } from "./policies.ts";

class Judged {
  nowMs = 0;
  hosts: readonly string[] = [];
  readonly noted: Refusal[] = [];
  readonly policy: NamespacePolicy;

  constructor(...all: readonly WrittenPolicy[]) {
    const compiled = all.map((each) => new CompiledPolicy(policyOf(each)));
    this.policy = new NamespacePolicy("id", compiled, {
      now: () => this.nowMs,
      onRefusal: (_, refusal) => void this.noted.push(refusal),
      isHosts: (address) => this.hosts.includes(addressText(address)),
    });
  }

  forward(name: string, type = "A", isPeek = false): string {
    return this.policy.forward(question(name, type), isPeek)?.reason ?? "allowed";
  }

  address(text: string, isLocal = false): string {
    return this.policy.address(unmapped(addressBytes(text) as Uint8Array), isLocal)?.reason ?? "allowed";
  }
}

function question(name: string, type = "A"): JudgedQuestion {
  return { ...new StoredName(wireLabels(name) as Uint8Array), type: parseType(type), class: CLASS.IN };
}

test("a name needs a rule, and deny wins over all of them", () => {
  const judged = new Judged({ allow: ["a.test", "*.b.test", "**.c.test"], deny: ["no.c.test", "**.never.c.test"] });
  const expected: Readonly<Record<string, string>> = {
    "a.test": "allowed",
    "A.TEST": "allowed",
    "x.a.test": "not-allowed",
    "b.test": "not-allowed",
    "x.b.test": "allowed",
    "y.x.b.test": "not-allowed",
    "c.test": "not-allowed",
    "x.c.test": "allowed",
    "y.x.c.test": "allowed",
    "no.c.test": "denied",
    "x.never.c.test": "denied",
    "never.c.test": "allowed",
    "xc.test": "not-allowed",
    "a.test.evil.test": "not-allowed",
  };
  for (const [name, reason] of Object.entries(expected)) assert.equal(judged.forward(name), reason, name);
  assert.equal(judged.policy.name(question("no.c.test"))?.text, "policy agents: deny no.c.test (f:100)");
  assert.equal(judged.policy.forward(question("z.test"), true)?.text, "policy agents: no rule allows it (f:2:3)");
});

test("a rule with a port allows the name, and one that denies a port leaves it", () => {
  const judged = new Judged({ allow: ["a.test:443", "b.test:22/tcp"], deny: ["b.test:25"] });
  assert.deepEqual([judged.forward("a.test"), judged.forward("b.test")], ["allowed", "allowed"]);
});

test("a wildcard allows few types and no long names, a listed name any", () => {
  const judged = new Judged({ allow: ["a.test", "**.c.test"] });
  for (const type of ["A", "AAAA", "CNAME", "HTTPS", "SVCB", "SRV", "PTR", "MX"])
    assert.equal(judged.forward("x.c.test", type), "allowed", type);
  for (const type of ["TXT", "NULL", "ANY", "NS", "DS", "TYPE65280", "CAA"])
    assert.deepEqual([judged.forward("x.c.test", type), judged.forward("a.test", type)], ["type", "allowed"], type);
  // A label of n bytes takes n + 1: 100 bytes are the most.
  assert.equal(judged.forward(`${"x".repeat(49)}.${"y".repeat(49)}.c.test`), "allowed");
  assert.equal(judged.forward(`${"x".repeat(49)}.${"y".repeat(50)}.c.test`), "length");
  assert.equal(new Judged({ allow: ["**.c.test"], types: new Set([16]) }).forward("x.c.test", "TXT"), "allowed");
  const chaos = { ...question("a.test"), class: 3 };
  assert.equal(judged.policy.forward(chaos, true)?.reason, "not-allowed");
});

test("of new names under a wildcard so many pass in a minute, and those that are known always do", () => {
  const judged = new Judged({ allow: ["a.test", "**.c.test", "**.d.test"], newNamesPerMinute: 3 });
  for (const name of ["1", "2", "3"]) assert.equal(judged.forward(`${name}.c.test`), "allowed");
  assert.equal(judged.forward("4.c.test"), "new-names");
  assert.equal(judged.forward("4.c.test", "A", true), "new-names", "a look is no query");
  assert.equal(judged.forward("1.c.test", "AAAA"), "allowed");
  assert.equal(judged.forward("1.d.test"), "allowed", "each wildcard has its own");
  assert.equal(judged.forward("a.test"), "allowed");
  judged.nowMs = 60_000;
  for (let look = 0; look < 9; look++) assert.equal(judged.forward(`look${look}.c.test`, "A", true), "allowed");
  for (const name of ["4", "5", "6"]) assert.equal(judged.forward(`${name}.c.test`), "allowed");
  assert.equal(judged.forward("7.c.test"), "new-names");
});

test("names whose hashes are the same are different names", () => {
  const judged = new Judged({ allow: ["**.c.test"], newNamesPerMinute: 5 });
  const passed = Array.from({ length: 3_000 }, (_, index) => judged.forward(`n${index}.c.test`)).filter(
    (reason) => reason === "allowed",
  );
  assert.equal(passed.length, 5);
});

test("names of this machine need no rule, as far as peers and host let them", () => {
  const names = [LOCAL_SOURCE.network, LOCAL_SOURCE.declared, LOCAL_SOURCE.engineHost, LOCAL_SOURCE.addHost] as const;
  const reasons = (written: WrittenPolicy, name = "x.test"): (string | undefined)[] =>
    [...names, ...FOREIGN_SOURCES, LOCAL_SOURCE.rule].map(
      (source) => new Judged(written).policy.local(question(name), source)?.reason,
    );
  const foreign = ["not-allowed", "not-allowed", "not-allowed"];
  assert.deepEqual(reasons({}), [undefined, undefined, "host", "host", ...foreign, undefined]);
  assert.deepEqual(reasons({ host: "allow" }), [undefined, undefined, undefined, undefined, ...foreign, undefined]);
  assert.deepEqual(reasons({ peers: "names" }), [undefined, undefined, "host", "host", ...foreign, undefined]);
  assert.deepEqual(reasons({ peers: "deny" }), ["peers", "peers", "host", "host", ...foreign, undefined]);
  assert.deepEqual(reasons({ peers: "deny", allow: ["x.test"] }), Array.from({ length: 8 }));
});

test("addresses that are not public are refused, unless a rule allows them", () => {
  const judged = new Judged({ allow: ["10.9.0.0/16", "[fd00:1::]:443"], deny: ["203.0.113.0/24"] });
  assert.equal(judged.address("198.51.100.1"), "allowed");
  assert.equal(judged.address("10.8.0.1"), "private");
  assert.equal(judged.address("10.9.3.1"), "allowed");
  assert.equal(judged.address("fd00:1::"), "allowed");
  assert.equal(judged.address("::ffff:10.8.0.1"), "private");
  assert.equal(judged.address("203.0.113.9"), "denied");
  assert.equal(judged.address("64:ff9b::203.0.113.9"), "denied", "it leads to the denied one");
  assert.equal(judged.address("10.8.0.1", true), "allowed", "of a container");
  assert.equal(judged.address("203.0.113.9", true), "denied", "also of a container");
  assert.equal(new Judged({ private: "allow" }).address("10.8.0.1"), "allowed");
});

test("addresses of the machine are refused with host: deny, however they are written, unless a rule allows them", () => {
  const judged = new Judged({ private: "allow", allow: ["198.51.100.3:443"] });
  judged.hosts = ["198.51.100.2", "198.51.100.3", "2001:db8::2", "127.0.0.1", "::1"];
  for (const address of [
    "198.51.100.2",
    "2001:db8::2",
    "::ffff:198.51.100.2",
    "64:ff9b::198.51.100.2",
    "2002:c633:6402::",
  ])
    assert.equal(judged.address(address), "host-address", address);
  for (const address of ["198.51.100.1", "198.51.100.3", "127.0.0.1", "::1"])
    assert.equal(judged.address(address), "allowed", address);
  assert.equal(judged.address("198.51.100.2", true), "allowed", "of a name of this machine");
  const open = new Judged({ host: "allow" });
  open.hosts = judged.hosts;
  assert.equal(open.address("198.51.100.2"), "allowed");
});

test("a cloud's agent and addresses that are translated to private ones are not public", () => {
  const judged = new Judged({});
  for (const address of ["168.63.129.16", "::ffff:0:10.8.0.1", "::ffff:0:198.51.100.1"])
    assert.equal(judged.address(address), "private", address);
});

test("whatever address has a private one in it is private", () => {
  const bytes = fc.uint8Array({ minLength: 4, maxLength: 4 });
  fc.assert(
    fc.property(bytes, (v4) => {
      const mapped = Uint8Array.from([...Array.from({ length: 10 }, () => 0), 255, 255, ...v4]);
      const nat64 = Uint8Array.from([0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0, ...v4]);
      const sixToFour = Uint8Array.from([0x20, 0x02, ...v4, ...Array.from({ length: 10 }, () => 0)]);
      for (const each of [unmapped(mapped), nat64, sixToFour]) assert.equal(isPrivate(each), isPrivate(v4));
    }),
  );
  const first = new Set([0, 10, 127]);
  fc.assert(fc.property(bytes, (v4) => !first.has(v4[0] ?? 0) || isPrivate(v4)));
});

test("a reverse name is that of an address that a rule allows, or that the container was given lately", () => {
  const judged = new Judged({ allow: ["10.9.0.0/16"], deny: ["10.9.9.0/24"], keepMs: 1_000 });
  const reverse = (text: string): string => {
    const labels = reverseLabels(addressBytes(text) as Uint8Array);
    const name = Buffer.concat([labels, wireLabels(text.includes(":") ? "ip6.arpa" : "in-addr.arpa") as Uint8Array]);
    const asked = { ...new StoredName(name), type: parseType("PTR"), class: CLASS.IN };
    return judged.policy.forward(asked, false)?.reason ?? "allowed";
  };
  assert.deepEqual(
    [reverse("10.9.1.1"), reverse("10.9.9.1"), reverse("198.51.100.1")],
    ["allowed", "denied", "not-allowed"],
  );
  for (const each of ["198.51.100.1", "2001:db8::7"]) judged.policy.answered(addressBytes(each) as Uint8Array);
  assert.deepEqual([reverse("198.51.100.1"), reverse("2001:db8::7")], ["allowed", "allowed"]);
  judged.nowMs = 1_000;
  assert.equal(reverse("198.51.100.1"), "not-allowed");
});

test("of several policies each must allow a name, and one that is enforced decides before one that records", () => {
  const judged = new Judged(
    { name: "audit", mode: "audit", allow: ["a.test"] },
    { name: "one", allow: ["a.test", "b.test", "**.c.test"] },
    { name: "two", allow: ["b.test", "*.c.test"] },
  );
  const by = (name: string): string => {
    const refusal = judged.policy.forward(question(name), true);
    return refusal === undefined ? "allowed" : `${refusal.policy.name} ${refusal.isEnforced}`;
  };
  assert.deepEqual(["a.test", "b.test", "x.c.test", "y.x.c.test", "z.test"].map(by), [
    "two true",
    "audit false",
    "audit false",
    "two true",
    "one true",
  ]);
});

test("an operator allows a name for a while, also one that is denied, and none of its answers", () => {
  const judged = new Judged({ deny: ["a.test"] });
  judged.policy.setGrants([{ pattern: readPattern("*.test"), untilMs: 100, text: "by root" }]);
  assert.deepEqual([judged.policy.name(question("a.test")), judged.forward("a.test")], [undefined, "allowed"]);
  assert.equal(judged.address("10.0.0.1"), "private");
  judged.nowMs = 100;
  assert.equal(judged.policy.name(question("a.test"))?.reason, "denied");
  judged.nowMs = 0;
  judged.policy.setGrants([]);
  assert.equal(judged.forward("b.test"), "not-allowed");
});

test("a refusal is one object for each rule and reason, whatever is asked", () => {
  const judged = new Judged({ allow: ["**.c.test"], deny: ["**.d.test"] });
  const refusals = new Set<Refusal | undefined>();
  for (let index = 0; index < 100; index++) {
    refusals.add(judged.policy.forward(question(`n${index}.test`), true));
    refusals.add(judged.policy.forward(question(`n${index}.d.test`), true));
    refusals.add(judged.policy.forward(question(`n${index}.c.test`, "TXT"), true));
  }
  assert.equal(refusals.size, 3);
});
