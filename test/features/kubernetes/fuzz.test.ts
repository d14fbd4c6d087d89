// Fuzz of what clusters send, objects of the API, and of kubeconfigs, from fragments that mean something and bytes that do not. Each is read
// or refused with a short reason, and what was good beside it stays.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";

import { BadSettings } from "../../../src/config/bad-settings.ts";
import { readDocument } from "../../../src/config/file/document.ts";
import { textOf } from "../../../src/config/file/files.ts";
import { accessIn } from "../../../src/features/kubernetes/kubeconfig.ts";
import { REASON_CHARS, damaged, refusedShortly } from "../../fuzz/damage.ts";
import { Random } from "../../fuzz/random.ts";
import { makeFolder } from "../../support/rig/folder.ts";
import { CLUSTER, clusterIp, slice } from "./cluster-objects.ts";
import { ClusterWorld } from "./clustered.ts";

const SEED = 20_261_126;
const INPUTS = 1_000;
const RCODES = new Set([0, 2, 3]);

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
      const { value, mistakes } = readDocument(textOf(readFileSync(path), path));
      if (mistakes.length > 0) continue;
      const { server, token } = await accessIn(value, path, random.once(5) ? "one" : undefined);
      assert.match(server, /^https?:\/\/[^/@]+/, `input ${index}`);
      assert.ok(token === undefined || typeof token === "string", `input ${index}`);
      read += 1;
    } catch (error) {
      refusedShortly(error instanceof BadSettings ? error : new BadSettings([(error as Error).message]), index);
    }
  }
  assert.ok(read > INPUTS / 20 && read < INPUTS / 2, `${read} of ${INPUTS} were read`);
});
