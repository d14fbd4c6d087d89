// Declared names on a real engine: in the settings and in a folder that is followed, for everybody, a network and a Compose
// project; CNAMEs to containers and to names of upstream servers; what a container asks with dig and with its C library.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { dataOf, dig } from "../../support/client/dig.ts";
import { dns11, startDns11 } from "../../support/program/dns11.ts";
import { SharedDns11 } from "../../support/program/shared-dns11.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { page } from "../../support/program/scrape.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";
import { waitFor } from "../../support/rig/wait.ts";

const SETTINGS = `records:
  api.shop.test: 10.9.0.5
  shop.test: {mx: 10 mail.shop.test, txt: v=spf1 -all, caa: 0 issue "ca.example"}
  _http._tcp.shop.test: {srv: 0 5 80 web.shop.test}
  db.shop.test: {cname: web}
  web.shop.test: {container: web}
  far.shop.test: {cname: Name7.cname.test}
  nx.shop.test: {cname: a.nx.test}
  big.shop.test: {cname: a.big.test}
  many.shop.test: {txt: [${Array.from({ length: 40 }, (_, n) => `text-${n}-${"x".repeat(50)}`).join(", ")}]}
  "*.apps.shop.test": {container: web}
  scoped.shop.test: 10.9.0.1
networks: {back: {records: {scoped.shop.test: 10.9.0.2}}}
projects: {shop: {records: {scoped.shop.test: 10.9.0.3}}}
`;
const WITH_VERSION = `version: 1\n${SETTINGS}`;

const folder = mkdtempSync(join(tmpdir(), "d11-records-"));
const config = join(folder, "settings.yaml");
const files = mkdtempSync(join(tmpdir(), "d11-records-dir-"));
let engine: Engine;
let upstream: Upstream;
let web: Container;
let app: Container;
let back: Container;
let project: Container;
const shared = new SharedDns11(() => engine);

before(async () => {
  writeFileSync(config, WITH_VERSION);
  engine = await startEngine({ resolvConf: "nameserver 127.0.0.1\n" });
  upstream = await startUpstream(engine);
  for (const name of ["front", "back"]) await createNetwork(engine, name);
  web = await runContainer(engine, { name: "web", networks: ["front"] });
  app = await runContainer(engine, { name: "app", networks: ["front"] });
  back = await runContainer(engine, { name: "back", networks: ["back"] });
  const labels = { "com.docker.compose.project": "shop" };
  project = await runContainer(engine, { name: "project", networks: ["back"], labels });
});
after(async () => {
  await shared[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
  for (const each of [folder, files]) rmSync(each, { recursive: true });
});

async function addressesOf(container: Container, name: string): Promise<string[]> {
  return dataOf(await dig(container, name));
}

test("records of every type are answered locally, over UDP and TCP, and other types are empty", async () => {
  await shared.under(SETTINGS);
  for (const [name, type, data] of [
    ["api.shop.test", "A", "10.9.0.5"],
    ["API.Shop.Test", "A", "10.9.0.5"],
    ["shop.test", "MX", "10 mail.shop.test."],
    ["shop.test", "TXT", '"v=spf1 -all"'],
    ["shop.test", "CAA", '0 issue "ca.example"'],
    ["_http._tcp.shop.test", "SRV", "0 5 80 web.shop.test."],
  ] as const) {
    for (const transport of ["+notcp", "+tcp"]) {
      assert.deepEqual(dataOf(await dig(app, name, type, transport)), [data], `${name} ${type} ${transport}`);
    }
  }
  for (const [name, type] of [
    ["api.shop.test", "AAAA"],
    ["api.shop.test", "HTTPS"],
    ["shop.test", "A"],
  ] as const) {
    const { status, answer, authority } = await dig(app, name, type);
    assert.deepEqual([status, answer.length, authority[0]?.type], ["NOERROR", 0, "SOA"], `${name} ${type}`);
  }
  const cut = await dig(app, "many.shop.test", "TXT", "+notcp", "+ignore", "+noedns");
  assert.ok(cut.flags.has("tc"));
  assert.equal((await dig(app, "many.shop.test", "TXT")).answer.length, 40);
  const asked = (await upstream.queries()).filter(({ name }) => name.toLowerCase().endsWith("shop.test"));
  assert.deepEqual(asked, [], "no declared name goes upstream");
});

test("CNAMEs lead to containers, also for a C library, and a wildcard stands for a container", async () => {
  await shared.under(SETTINGS);
  const address = web.address("front");
  const cname = await dig(app, "db.shop.test");
  assert.deepEqual(dataOf(cname), ["web.", address]);
  assert.deepEqual(dataOf(await dig(app, "db.shop.test", "CNAME")), ["web."]);
  assert.deepEqual(await addressesOf(app, "web.shop.test"), [address]);
  assert.deepEqual(await addressesOf(app, "Any.Apps.shop.test"), [address]);
  assert.deepEqual(await addressesOf(back, "web.shop.test"), [], "no address on its networks");
  const { stdout } = await app.exec("ping", ["-c", "1", "-W", "2", "db.shop.test"]);
  assert.match(stdout, new RegExp(`PING db\\.shop\\.test \\(${address}\\)`));
});

test("a name is for everybody, a network or a Compose project", async () => {
  await shared.under(SETTINGS);
  assert.deepEqual(await addressesOf(app, "scoped.shop.test"), ["10.9.0.1"]);
  assert.deepEqual(await addressesOf(back, "scoped.shop.test"), ["10.9.0.2"]);
  assert.deepEqual(await addressesOf(project, "scoped.shop.test"), ["10.9.0.3"]);
});

for (const [mode, line] of [
  ["with failover, forwarded and from the cache", ""],
  ["where servers are queried as Docker does", "forward: {order: docker}"],
] as const)
  test(`a CNAME to a name of an upstream server is resolved there, ${mode}`, async () => {
    await shared.under(SETTINGS, line);
    for (const round of ["first", "second"]) {
      for (const transport of ["+notcp", "+tcp"]) {
        const reply = await dig(app, "Far.shop.test", transport);
        assert.deepEqual(
          reply.answer.map(({ name, type, data }) => `${name} ${type} ${data}`),
          [
            "Far.shop.test. CNAME Name7.cname.test.",
            "Name7.cname.test. CNAME name7.ok.test.",
            "name7.ok.test. A 192.0.2.7",
          ],
          `${round} ${transport}`,
        );
        assert.equal(reply.question?.name, "Far.shop.test.");
      }
    }
    const missing = await dig(app, "nx.shop.test");
    assert.deepEqual([missing.status, dataOf(missing)], ["NXDOMAIN", ["a.nx.test."]]);
    const big = await dig(app, "big.shop.test", "TXT", "+notcp", "+ignore", "+bufsize=1000");
    assert.ok(big.flags.has("tc"), big.raw);
    assert.ok((big.size ?? 0) <= 1000);
    const whole = await dig(app, "big.shop.test", "TXT", "+bufsize=1232");
    assert.ok(!whole.flags.has("tc"));
  });

test("the folder is followed, a bad file keeps its names and is shown; explain, tail and metrics know the source; so with reloads", async () => {
  await shared.stop();
  const args = ["--config", config, "--records-dir", files, "--metrics-addr", "127.0.0.1:0"];
  await using instance = await startDns11(engine, { args });
  const address = async (name: string): Promise<string> => (await addressesOf(app, name)).join(" ");
  writeFileSync(join(files, "one.hosts"), "10.9.1.1 one.lan.test\n");
  await waitFor("10.9.1.1", async () => (await address("one.lan.test")) === "10.9.1.1" || undefined);
  assert.deepEqual(dataOf(await dig(app, "-x", "10.9.1.1")), ["one.lan.test."]);
  writeFileSync(join(files, "one.hosts"), "10.9.1.2 one.lan.test\n10.9.1 two.lan.test\n");
  await waitFor("the mistake", () => instance.log.includes("records have mistakes") || undefined);
  assert.equal(await address("one.lan.test"), "10.9.1.1");
  const where = ["-H", engine.host, "--state-dir", instance.stateDir];
  const { stdout: status } = await dns11(["status", ...where]);
  assert.match(status, /one\.hosts:2:1: invalid address "10\.9\.1"/);
  const { stdout: explained } = await dns11(["explain", "one.lan.test", "--in", "app", "-v", ...where]);
  assert.match(explained, /"one\.lan\.test" is declared for everybody at .*one\.hosts:1:1; answered with its records/);
  const { stdout: found } = await dns11(["doctor", "--all", ...where]);
  assert.match(
    found.replaceAll(/\s+/g, " "),
    /declared names.*one\.hosts:2:1: invalid address "10\.9\.1".* names that the file had before stay/,
  );
  await dig(app, "web");
  const { stdout: queries } = await dns11(["tail", "app", "-n", "20", "--json", ...where]);
  const sources = new Map(
    queries.split("\n").flatMap((line) => {
      if (line === "") return [];
      const { name, source } = JSON.parse(line) as { readonly name: string; readonly source: string };
      return [[name, source] as const];
    }),
  );
  assert.deepEqual([sources.get("one.lan.test"), sources.get("web")], ["declared", "network"]);
  const counted = await page((await instance.status()).metrics ?? "", "/metrics");
  assert.match(counted.text, /^dns11_local_answers_total\{source="declared"\} [1-9]/m);
  writeFileSync(join(files, "one.hosts"), "10.9.1.2 one.lan.test\n");
  await waitFor("10.9.1.2", async () => (await address("one.lan.test")) === "10.9.1.2" || undefined);

  writeFileSync(config, WITH_VERSION.replace("10.9.0.5", "10.9.0.6"));
  assert.equal((await dns11(["reload", ...where])).code, 0);
  assert.deepEqual(await addressesOf(app, "api.shop.test"), ["10.9.0.6"]);
  writeFileSync(config, WITH_VERSION.replace("10.9.0.5", "10.9.0"));
  const refused = await dns11(["reload", ...where]);
  assert.match(refused.stderr, /settings\.yaml:3:18: records\.api\.shop\.test: invalid address "10\.9\.0"/);
  assert.deepEqual(await addressesOf(app, "api.shop.test"), ["10.9.0.6"]);
  writeFileSync(config, WITH_VERSION);
});
