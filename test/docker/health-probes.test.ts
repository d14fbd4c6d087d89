// Pages that say whether a container resolves a name, as the health checks of kube-dns did: the pages that the documents have, names that
// fail, containers that are gone, and what a reload changes.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { type Dns11, WITHOUT_KEEPER, dns11, startDns11 } from "../support/program/dns11.ts";
import { type Scraped, page } from "../support/program/scrape.ts";
import { makeFolder } from "../support/rig/folder.ts";
import { waitFor } from "../support/rig/wait.ts";
import { type Upstream, startUpstream } from "../support/servers/upstream.ts";

const KUBERNETES = "kubernetes.default.svc.cluster.local";
const config = join(makeFolder("probes"), "dns11.yaml");

let engine: Engine;
let upstream: Upstream;
let app: Container;
let instance: Dns11;

before(async () => {
  engine = await startEngine({ resolvConf: "nameserver 127.0.0.1\n" });
  upstream = await startUpstream(engine);
  await createNetwork(engine, "front");
  app = await runContainer(engine, { name: "app", networks: ["front"] });
  write(`dnsmasq=${KUBERNETES}@app`, "kubedns=nobody.nx.test@app", "empty=empty.test@app", "gone=app@nobody");
  const env = { ...WITHOUT_KEEPER, DNS11_METRICS_ADDR: "127.0.0.1:0" };
  instance = await startDns11(engine, { args: ["--config", config], env });
  await instance.waitFor("app", "attached");
});
after(async () => {
  await instance[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

function write(...probes: readonly string[]): void {
  const records = `records: {${KUBERNETES}: 10.96.0.1, empty.test: {txt: only a text}}`;
  writeFileSync(config, `version: 1\n${records}\nhealth-probes: ${JSON.stringify(probes)}\n`);
}

async function get(path: string): Promise<Scraped> {
  const { metrics } = await instance.status();
  return await page(metrics ?? "", path);
}

test("a page is healthy while its container resolves its name, and says what is wrong otherwise", async () => {
  assert.deepEqual(await get("/healthz-dnsmasq").then(({ status, text }) => [status, text]), [200, "OK\n"]);
  for (const [path, status, text] of [
    ["/healthz-kubedns", 503, /^nobody\.nx\.test in app: NXDOMAIN\n$/],
    ["/healthz-empty", 503, /^empty\.test in app: no records\n$/],
    ["/healthz-gone", 503, /^app in nobody: .*nobody/],
    ["/healthz-other", 404, /^no probe has this page/],
    ["/healthz-", 404, /^no probe has this page/],
    ["/healthz-dnsmasq/more", 404, /^no probe has this page/],
    ["/healthz-__proto__", 404, /^no probe has this page/],
  ] as const) {
    const found = await get(path);
    assert.equal(found.status, status, path);
    assert.match(found.text, text, path);
  }
  assert.equal((await get("/readiness")).status, 200);
  assert.equal(await get("/healthz").then(({ text }) => text), "OK\n");
});

test("its queries count nowhere as queries of the container", async () => {
  await get("/healthz-kubedns");
  const { code, stdout } = await dns11(["tail", "app", "-n", "50", "--state-dir", instance.stateDir]);
  assert.equal(code, 0);
  assert.doesNotMatch(stdout, /nobody\.nx\.test/);
});

test("a container that stops is not healthy; other probes take effect with a reload", async () => {
  await app.stop();
  await waitFor("the page to fail", async () => (await get("/healthz-dnsmasq")).status === 503 || undefined);
  await app.start();
  await waitFor("the page to be healthy", async () => (await get("/healthz-dnsmasq")).status === 200 || undefined);
  write(`new=${KUBERNETES}@app`);
  await instance.reload();
  assert.equal((await get("/healthz-new")).status, 200);
  assert.equal((await get("/healthz-dnsmasq")).status, 404);
});

test("probes that cannot be meant are mistakes", async () => {
  const path = join(makeFolder("bad-probes"), "dns11.yaml");
  for (const [probes, problem] of [
    [["a=b"], /health-probes\[0\]: invalid probe "a=b": use PAGE=NAME@CONTAINER/],
    [["A=x.test@app"], /invalid probe/],
    [["a=x.test@app", "a=y.test@app"], /has the page "a" twice/],
    [Array.from({ length: 33 }, (_, n) => `p${n}=x.test@app`), /has 33 probes: use at most 32/],
  ] as const) {
    writeFileSync(path, `version: 1\nhealth-probes: ${JSON.stringify(probes)}\n`);
    assert.match((await dns11(["check-config", path])).stderr, problem);
  }
});
