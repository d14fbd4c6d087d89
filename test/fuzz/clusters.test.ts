// Fuzz of what clusters, and those who set them up, write: objects of the API, kubeconfigs, folders of dnsmasq, ConfigMaps of kube-dns and
// the settings of kubelets, from fragments that mean something and bytes that do not. Each is read or refused with a short reason, and what
// was good beside it stays.

import assert from "node:assert/strict";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { isIP } from "node:net";
import { join } from "node:path";
import { after, test } from "node:test";

import { type RouteText, namedServerText } from "../../src/base/model/server-text.ts";
import { BadSettings, MISTAKES_SHOWN_MAX } from "../../src/config/bad-settings.ts";
import { readDnsmasqFiles } from "../../src/config/dnsmasq/dnsmasq-files.ts";
import { readKubeconfig } from "../../src/config/file/kubeconfig.ts";
import { readConfigMap } from "../../src/config/kube-dns/config-map.ts";
import { clusterDnsIn } from "../../src/container/kind/cluster-dns.ts";
import { makeFolder } from "../support/rig/folder.ts";
import { CLUSTER, clusterIp, slice } from "../support/servers/cluster-objects.ts";
import { ClusterWorld } from "../unit/support/clustered.ts";
import { Random } from "./random.ts";

const SEED = 20_261_126;
const INPUTS = 1_000;
/** Of one mistake: what is wrong in a text is shown, the text is not. */
const REASON_CHARS = 1_000;
const RCODES = new Set([0, 2, 3]);

const VALUES: readonly unknown[] = [
  ...[
    null,
    true,
    false,
    0,
    -1,
    1.5,
    65_536,
    2 ** 53,
    "",
    " ",
    ".",
    "..",
    "*",
    "a.b",
    "None",
    "ExternalName",
    "Headless",
  ],
  ...[
    "10.0.0.1",
    "10.0.0.256",
    "fd00::1",
    "::ffff:10.0.0.1",
    "fe80::1%eth0",
    "0.0.0.0",
    "127.0.0.1",
    "default",
    "headless",
  ],
  ...[
    "x".repeat(63),
    "x".repeat(64),
    "x.".repeat(127),
    "\u0000",
    "é",
    "_tcp",
    "svc",
    "endpoints",
    "pod",
    "cluster.local",
  ],
  ...[
    [],
    {},
    [[]],
    [null],
    { constructor: 1 },
    { addresses: ["10.0.0.9"] },
    [{ addresses: ["fd00::9"], hostname: "h" }],
  ],
  ...[
    [{ name: "x", port: 1, protocol: "TCP" }],
    [{ name: "_", port: 65_535, protocol: "SCTP" }],
    Array.from({ length: 300 }, () => "10.0.0.1"),
  ],
];

// The value with one of its parts replaced, wherever that is.
function damaged(value: unknown, random: Random): unknown {
  if (typeof value !== "object" || value === null || random.once(6)) return random.pick(VALUES);
  const keys = Object.keys(value);
  const key = keys.length === 0 || random.once(20) ? "__proto__" : random.pick(keys);
  const part = damaged((value as Record<string, unknown>)[key], random);
  if (Array.isArray(value)) return value.map((each: unknown, index) => (String(index) === key ? part : each));
  // As JSON.parse makes it: an own property, also where the key is __proto__.
  return Object.fromEntries([...Object.entries(value).filter(([each]) => each !== key), [key, part]]);
}

test("objects of the API", () => {
  const neighbours = [
    clusterIp("neighbour.beside", ["10.7.0.1"]),
    slice("neighbour.beside", { endpoints: [{ addresses: ["10.7.0.2"] }] }),
  ];
  const names = [
    "kubernetes.default",
    "headless.default",
    "my-pet.headless.default",
    "foo.default",
    "10-0-0-9.default",
    "x",
  ];
  let skipped = 0;
  for (let index = 0; index < INPUTS / 2; index++) {
    const random = new Random(SEED, index);
    const world = new ClusterWorld(neighbours);
    for (const object of CLUSTER) {
      let bad: unknown = object;
      for (let times = random.below(4); times > 0; times--) bad = damaged(bad, random);
      world.put(bad);
    }
    for (const name of names) {
      for (const [place, type] of [
        ["svc", "A"],
        ["svc", "AAAA"],
        ["svc", "SRV"],
        ["svc", "CNAME"],
        ["endpoints", "A"],
        ["pod", "A"],
      ] as const) {
        const asked = `${random.once(4) ? "_https._tcp." : ""}${name}.${place}.cluster.local`;
        const [rcode] = world.ask(asked, type);
        // Whoever writes a Service may name what is outside: that is asked elsewhere.
        assert.ok(rcode === "forwarded" || RCODES.has(Number(rcode)), `input ${index}: ${asked} ${type}: ${rcode}`);
      }
    }
    assert.deepEqual(world.ask("neighbour.beside.svc.cluster.local"), [0, "A 10.7.0.1"], `input ${index}`);
    const { report } = world.names;
    skipped += report.skipped;
    for (const { key, problem } of report.problems)
      assert.ok(`${key}${problem}`.length < REASON_CHARS, `input ${index}`);
  }
  assert.ok(skipped > INPUTS / 10, "a run without an object that is left out would prove little");
});

const YAML_WORDS = [
  ..."apiVersion: kind: Config clusters: users: contexts: current-context: name: cluster: user: context: server: token:".split(
    " ",
  ),
  ..."tokenFile: certificate-authority: certificate-authority-data: client-key-data: tls-server-name: exec: proxy-url:".split(
    " ",
  ),
  ..."https://10.0.0.5:6443 http://[fd00::5] https://u:p@h ftp://h admin one - [ ] { } , & * &a *a << !!binary | > # --- __proto__: \t".split(
    " ",
  ),
  ..."/dev/zero / . .. \n \n \n \u0000 \ufeff é ~ null true 0x1".split(" "),
  "x".repeat(300),
  "\n  ",
];

function yaml(random: Random): string {
  const words = Array.from({ length: random.below(60) }, () => random.pick(YAML_WORDS));
  return random.once(4) ? random.bytes(random.below(200)).toString("latin1") : words.join(random.once(3) ? "\n" : " ");
}

const KUBECONFIG = {
  apiVersion: "v1",
  kind: "Config",
  "current-context": "one",
  clusters: [{ name: "c", cluster: { server: "https://10.0.0.5:6443", "certificate-authority-data": "Q0E=" } }],
  users: [{ name: "u", user: { token: "t", tokenFile: "token" } }],
  contexts: [{ name: "one", context: { cluster: "c", user: "u" } }],
};

const folder = makeFolder("fuzz-clusters");
after(() => rmSync(folder, { recursive: true }));

test("kubeconfigs", async () => {
  mkdirSync(join(folder, "one"));
  const path = join(folder, "one", "config");
  let read = 0;
  for (let index = 0; index < INPUTS; index++) {
    const random = new Random(SEED, index);
    writeFileSync(path, random.once(2) ? yaml(random) : JSON.stringify(damaged(KUBECONFIG, random)));
    try {
      const { server, token } = await readKubeconfig(path, random.once(5) ? "one" : undefined);
      assert.match(server, /^https?:\/\/[^/@]+/, `input ${index}`);
      assert.ok(token === undefined || typeof token === "string", `input ${index}`);
      read += 1;
    } catch (error) {
      refusedShortly(error, index);
    }
  }
  assert.ok(read > INPUTS / 20 && read < INPUTS / 2, `${read} of ${INPUTS} were read`);
});

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

function refusedShortly(error: unknown, index: number): void {
  assert.ok(error instanceof BadSettings, `input ${index}: ${String(error)}`);
  assert.ok(error.lines.length > 0 && error.lines.length <= MISTAKES_SHOWN_MAX, `input ${index}`);
  for (const line of error.lines) assert.ok(line.length < REASON_CHARS, `input ${index}: ${line.length} characters`);
}

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
