// Fuzz of what those write who set up clusters: the settings of kubelets, from fragments that mean something and bytes that do not.

import assert from "node:assert/strict";
import { isIP } from "node:net";
import { test } from "node:test";

import { clusterDnsIn } from "../../src/container/watch/cluster-dns.ts";
import { Random } from "./random.ts";
import { INPUTS, SEED } from "./routes.ts";

const KUBELET_WORDS = [
  "clusterDNS:",
  "\n",
  "\n",
  "- ",
  "-",
  " ",
  "\t",
  "[",
  "]",
  ",",
  '"',
  "'",
  "10.96.0.10",
  "fd00:10:96::a",
  "a.b",
  "clusterDomain:",
  "\r",
  "#",
  "\u0000",
];

const KUBELET_STARTS = ["", "clusterDNS:", "clusterDNS:\n- ", "clusterDNS: ["];

test("settings of kubelets", () => {
  let found = 0;
  for (let index = 0; index < INPUTS * 10; index++) {
    const random = new Random(SEED, index);
    const text = `${random.pick(KUBELET_STARTS)}${Array.from({ length: random.below(20) }, () => random.pick(KUBELET_WORDS)).join("")}`;
    const address = clusterDnsIn(text);
    if (address === undefined) continue;
    assert.ok(isIP(address) !== 0 && text.includes(address), `input ${index}: ${address}`);
    found += 1;
  }
  assert.ok(found > INPUTS / 20, `${found} addresses were found`);
});
