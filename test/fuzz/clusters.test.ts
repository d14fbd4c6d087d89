// Fuzz of what those write who set up clusters: folders of dnsmasq, ConfigMaps of kube-dns and the settings of kubelets, from fragments that
// mean something and bytes that do not. Each is read or refused with a short reason.

import assert from "node:assert/strict";
import { isIP } from "node:net";
import { test } from "node:test";

import { type RouteText, namedServerText } from "../../src/base/model/server-text.ts";
import type { BadSettings } from "../../src/config/bad-settings.ts";
import { readDnsmasqFiles } from "../../src/config/dnsmasq/dnsmasq-files.ts";
import { readConfigMap } from "../../src/config/kube-dns/config-map.ts";
import { clusterDnsIn } from "../../src/container/watch/cluster-dns.ts";
import { damaged, refusedShortly } from "./damage.ts";
import { Random } from "./random.ts";

const SEED = 20_261_126;
const INPUTS = 1_000;

const DNSMASQ_WORDS = [
  ..."server= local= address= rev-server= host-record= cname= ptr-record= txt-record= srv-host= mx-host= resolv-file=".split(
    " ",
  ),
  ..."all-servers domain-needed bogus-priv no-resolv local-ttl= cache-size= conf-dir= dhcp-range= strict-order servers-file=".split(
    " ",
  ),
  ..."/cluster.local/ /in-addr.arpa/ /#/ // / # 172.30.0.1 10.0.0.1#5353 fd00::1 127.0.0.1 10.0.0.0/24 eth0 @eth0 container:web".split(
    " ",
  ),
  ...'web.test *.shop.test a.b , = " \\ ; 0 60 4294967296 -1 \u0000 é'.split(" "),
  "x".repeat(64),
  "x.".repeat(130),
];

function dnsmasq(random: Random): string {
  return Array.from({ length: random.below(random.once(4) ? 12 : 3) }, () => {
    const words = Array.from({ length: 1 + random.below(4) }, () => random.pick(DNSMASQ_WORDS));
    return random.once(20) ? random.bytes(random.below(80)).toString("latin1") : words.join(random.once(8) ? " " : "");
  }).join("\n");
}

test("files of a dnsmasq folder", () => {
  let read = 0;
  for (let index = 0; index < INPUTS; index++) {
    const random = new Random(SEED, index);
    const files = Array.from({ length: 1 + random.below(3) }, (_, at) => ({
      path: `${at}.conf`,
      text: dnsmasq(random),
    }));
    const routes = routesOf(() => readDnsmasqFiles(files).values.dns ?? [], index, /^\d\.conf:\d+: /);
    if (routes !== undefined) read += 1;
  }
  assert.ok(read > INPUTS / 20 && read < INPUTS, `${read} of ${INPUTS} were read`);
});

const MAP_KEYS = ["stubDomains", "upstreamNameservers", "federations", "Corefile", "__proto__", ""];
const MAPS = [{ "acme.local": ["1.2.3.4"] }, ["8.8.8.8", "8.8.4.4"]];

test("ConfigMaps of kube-dns", () => {
  let read = 0;
  for (let index = 0; index < INPUTS; index++) {
    const random = new Random(SEED, index);
    const keys = Array.from({ length: 1 + random.below(2) }, () => {
      const key = random.once(6) ? random.pick(MAP_KEYS) : random.pick(MAP_KEYS.slice(0, 2));
      const good = MAPS[MAP_KEYS.indexOf(key)] ?? MAPS[0];
      const value = random.once(3) ? good : damaged(good, random);
      const json = JSON.stringify(value);
      return { key, path: `map/${key}`, text: random.once(6) ? json.slice(0, random.below(json.length)) : json };
    });
    const routes = routesOf(() => readConfigMap(keys).values.dns ?? [], index, /^map\/.*: /);
    if (routes !== undefined) read += 1;
  }
  assert.ok(read > INPUTS / 20 && read < INPUTS, `${read} of ${INPUTS} were read`);
});

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

// The routes of a text; undefined if it was refused, with a place for each mistake. Nobody who writes such a file names a container, or a
// node, which settings of dns11 alone may.
function routesOf(read: () => readonly RouteText[], index: number, place: RegExp): readonly RouteText[] | undefined {
  let routes: readonly RouteText[];
  try {
    routes = read();
  } catch (error) {
    refusedShortly(error, index);
    for (const line of (error as BadSettings).lines) assert.match(line, place, `input ${index}`);
    return undefined;
  }
  for (const server of routes.flatMap(({ servers }) => servers)) {
    const text = namedServerText(server);
    assert.match(text, /^(host|[\d.]+(:\d+)?|\[[\da-f:.]+\]:\d+|[\da-f:.]+(%\w+)?)$/i, `input ${index}`);
  }
  return routes;
}
