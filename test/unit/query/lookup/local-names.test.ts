// Proves which container an address belongs to, and which reverse names are local.

import assert from "node:assert/strict";
import { test } from "node:test";

import { addressBytes, reverseLabels } from "../../../../src/base/model/address.ts";
import { DEFAULT_BEHAVIOUR, type Behaviour, STRICT_BEHAVIOUR } from "../../../../src/base/model/behaviour.ts";
import type { VisibleNetwork } from "../../../../src/container/names/docker/docker-names.ts";
import { presentation } from "../../../../src/base/dns/name.ts";
import { LocalNames } from "../../../../src/query/lookup/local-names.ts";
import { aNetwork, aQuery, aView } from "../../../support/scripted/builders.ts";
import { placed } from "../../support/reply.ts";

const MODES = { strict: STRICT_BEHAVIOUR, default: DEFAULT_BEHAVIOUR };
const ONE = aNetwork({
  name: "one",
  members: [
    { names: ["web"], ipv4: "172.20.0.2", ipv6: "fd11::a:2" },
    { names: ["open"], ipv6: "fd11::" },
  ],
});
const TWO = aNetwork({ name: "two", members: [{ names: ["twin"], ipv4: "172.20.0.2" }] });

for (const [mode, behaviour] of Object.entries(MODES)) {
  test(`${mode}: the address of a container on one of the client's networks resolves to its name`, () => {
    assert.equal(found(behaviour, "2.0.20.172.in-addr.arpa", [ONE]), "web.one");
    assert.equal(found(behaviour, `${nibbles("fd11::a:2")}.ip6.arpa`, [ONE]), "web.one");
  });

  test(`${mode}: the first network with the address answers`, () => {
    assert.equal(found(behaviour, "2.0.20.172.in-addr.arpa", [TWO, ONE]), "twin.two");
    assert.equal(found(behaviour, "2.0.20.172.in-addr.arpa", [ONE, TWO]), "web.one");
  });

  test(`${mode}: other addresses, gateways and other trees are not local`, () => {
    for (const name of [
      "1.0.20.172.in-addr.arpa",
      "0.20.172.in-addr.arpa",
      "9.2.0.20.172.in-addr.arpa",
      "in-addr.arpa",
      "arpa",
      ".",
      "2.0.20.172",
      "2.0.20.172.in-addr.example",
      "2.0.20.172.in-addr.arpa.example",
      "2.0.20.172.in-addr.arpa.in-addr.arpa",
      "_http._tcp.local",
    ]) {
      assert.equal(found(behaviour, name, [ONE]), undefined, name);
    }
  });
}

test("strict: an address below the other tree is found, too; default: it is not", () => {
  const names = ["2.0.20.172.ip6.arpa", `${nibbles("fd11::a:2")}.in-addr.arpa`];
  for (const name of names) {
    assert.equal(found(STRICT_BEHAVIOUR, name, [ONE]), "web.one", name);
    assert.equal(found(DEFAULT_BEHAVIOUR, name, [ONE]), undefined, name);
  }
});

test("strict: any capital letter is a miss; default: letter case is ignored", () => {
  const names = ["2.0.20.172.IN-ADDR.arpa", `${nibbles("fd11::a:2").toUpperCase()}.ip6.arpa`];
  for (const name of names) {
    assert.equal(found(STRICT_BEHAVIOUR, name, [ONE]), undefined, name);
    assert.equal(found(DEFAULT_BEHAVIOUR, name, [ONE]), "web.one", name);
  }
});

test("strict: an IPv6 address that begins or ends with two colons is not found; default: it is", () => {
  const name = `${nibbles("fd11::")}.ip6.arpa`;
  assert.equal(found(STRICT_BEHAVIOUR, name, [ONE]), undefined);
  assert.equal(found(DEFAULT_BEHAVIOUR, name, [ONE]), "open.one");
});

test("strict: such an address on one network does not hide it on the next", () => {
  const next = aNetwork({ name: "next", members: [{ names: ["same"], ipv6: "fd11:0:0:0:0:0:0:0" }] });
  assert.equal(found(STRICT_BEHAVIOUR, `${nibbles("fd11::")}.ip6.arpa`, [ONE, next]), "same.next");
});

function nibbles(address: string): string {
  const labels = reverseLabels(addressBytes(address) ?? assert.fail());
  return presentation(labels, 0, labels.length);
}

function found(behaviour: Behaviour, name: string, networks: readonly VisibleNetwork[]): string | undefined {
  const { question } = placed(aQuery({ name }));
  const target = new LocalNames(behaviour).reverse(question, aView(networks))?.target;
  return target && presentation(target, 0, target.length);
}
