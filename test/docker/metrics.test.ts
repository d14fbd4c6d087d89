/**
 * Metrics and health checks: metrics follow the conventions of Prometheus, counters match the queries that were sent and
 * never decrease, and readiness is reported.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { createConnection, createServer } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { LIMITS } from "../../src/base/limits.ts";
import type { LifecycleReport } from "../../src/api/status.ts";
import { familiesOf, hostAddressFamilies } from "../../src/metrics/metrics.ts";
import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { dig } from "../support/client/dig.ts";
import { Dns11, dns11 as command, startDns11, variables } from "../support/program/dns11.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { idleMetrics } from "../support/program/metrics-source.ts";
import { lint, page, seriesIn, sumOf } from "../support/program/scrape.ts";
import { startUpstream } from "../support/servers/upstream.ts";
import { inTime, waitFor } from "../support/rig/wait.ts";

const CONTAINERS_MAX = 2;
const SERVER = "10.53.0.1";
/** Enough for a page and a query on a busy machine; the file's other tests are over by then. */
const LAME_DUCK = "30s";
/** Its rules redirect queries away, so the attachment fails. */
const IN_THE_WAY =
  "table ip early { chain out { type nat hook output priority -150; ip daddr 127.0.0.11 udp dport 53 dnat to 127.0.0.1:9; ip daddr 127.0.0.11 tcp dport 53 dnat to 127.0.0.1:9; }; }";

/** An instance that serves and has received no query. */
const LISTENER = {
  name: "listener",
  isServing: false,
  queries: 0,
  refused: { asker: 0, unknown: 0, host: 0, address: 0 },
  lost: 0,
};

const NO_QUERIES = idleMetrics(hostAddressFamilies([LISTENER]));

let engine: Engine;
let dns11: Dns11;
let address: string;
let client: Container;
/** It has a settings file, and starts when the first one has ended. */
let second: Dns11 | undefined;
let settings: string;

before(async () => {
  engine = await startEngine({ resolvConf: `nameserver ${SERVER}\n` });
  await createNetwork(engine, "n1");
  client = await runContainer(engine, { name: "client", networks: ["n1"] });
  dns11 = await startDns11(engine, { args: ["--metrics-addr", "127.0.0.1:0"] });
  address = (await dns11.status()).metrics ?? "";
});
after(async () => {
  await dns11[Symbol.asyncDispose]();
  await second?.[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

async function metrics(place = address): Promise<string> {
  const { status, text } = await page(place, "/metrics");
  assert.equal(status, 200);
  return text;
}

test("queries are counted by type, protocol and rcode, with their duration", async () => {
  await using _upstream = await startUpstream(engine, { address: SERVER });
  const before_ = await metrics();
  await dig(client, "client");
  await dig(client, "client", "AAAA");
  await dig(client, "+tcp", "client");
  await dig(client, "n7.ok.test");
  await dig(client, "n7.ok.test");
  await dig(client, "n7.ok.test", "TYPE4711");
  const text = await metrics();
  const grew = (name: string, labels?: Record<string, string>): number =>
    sumOf(text, name, labels) - sumOf(before_, name, labels);
  assert.equal(grew("dns11_dns_requests_total", { type: "A", proto: "udp", family: "1" }), 3);
  assert.equal(grew("dns11_dns_requests_total", { type: "AAAA" }), 1);
  assert.equal(grew("dns11_dns_requests_total", { proto: "tcp" }), 1);
  assert.equal(grew("dns11_dns_requests_total", { type: "other" }), 1, "an unknown type is counted as other");
  assert.equal(grew("dns11_dns_responses_total"), 6);
  assert.equal(grew("dns11_dns_request_duration_seconds_count"), 6);
  const moby = "libnetwork_resolver_query_duration_seconds_count";
  assert.equal(grew(moby, { outcome: "local" }), 3);
  assert.equal(grew(moby, { outcome: "forwarded" }), 2);
  assert.equal(grew(moby, { outcome: "cached" }), 1);
  assert.equal(grew("dns11_cache_hits_total", { type: "success" }), 1);
  assert.equal(grew("dns11_cache_misses_total"), 2);
  // On a busy machine a query may have been sent again, and its late reply counts as well.
  assert.ok(grew("dns11_proxy_request_duration_seconds_count", { to: `host(${SERVER})`, rcode: "NOERROR" }) >= 2);
  assert.equal(sumOf(text, "dns11_upstream_up", { to: `host(${SERVER})` }), 1);
  assert.ok(grew("libnetwork_resolver_upstream_request_duration_seconds_count", { proto: "udp" }) >= 2);
  assert.ok(sumOf(text, "dns11_cache_entries") >= 1);
});

test("the metrics follow the Prometheus conventions", async (context) => {
  const text = await metrics();
  assert.deepEqual(lint(text), []);
  const promtool = spawnSync("promtool", ["check", "metrics"], { input: text, encoding: "utf8" });
  if (promtool.error !== undefined) {
    context.diagnostic("promtool is not installed; only the built-in lint was applied");
    return;
  }
  assert.equal(promtool.status, 0, promtool.stdout + promtool.stderr);
  assert.equal(promtool.stdout + promtool.stderr, "");
});

test("a connection serves one request, and concurrent requests share one metrics page", async () => {
  await waitFor("a page on a connection with many requests", async () => {
    const pages = (await responseToMany()).split("# TYPE dns11_ready gauge").length - 1;
    assert.ok(pages <= 1, `${pages} pages`);
    // The reset that follows may overtake the page.
    return pages === 1 ? true : undefined;
  });
  // On a busy machine they do not arrive together; each page for itself would differ, because it contains the CPU time.
  const [first = ""] = await waitFor("concurrent requests to share a page", async () => {
    const texts = await Promise.all(Array.from({ length: 20 }, async () => await metrics()));
    return new Set(texts).size < texts.length / 2 ? texts : undefined;
  });
  const again = await waitFor("another page", async () => {
    const text = await metrics();
    return text === first ? undefined : text;
  });
  const start = (text: string): number => sumOf(text, "process_start_time_seconds");
  assert.equal(start(first), start(again));
});

/** What arrives on one connection that sends very many requests at once. */
async function responseToMany(): Promise<string> {
  const { port, hostname } = new URL(`http://${address}`);
  const connection = createConnection(Number(port), hostname);
  connection.write("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(2_000));
  let response = "";
  try {
    for await (const chunk of connection) response += String(chunk);
  } catch {
    // The server closes the connection without reading the other requests.
  }
  return response;
}

test("the control socket serves the same metrics, with the version", async () => {
  const { engine: described, version } = await dns11.status();
  const text = await metrics(join(dns11.stateDir, described?.id.replaceAll(/[^\w-]/g, "_") ?? "", "control.sock"));
  assert.equal(sumOf(text, "dns11_build_info", { version }), 1);
  const names = (all: string): Set<string> => new Set(seriesIn(all).map(({ name }) => name));
  assert.deepEqual(names(text), names(await metrics()));
});

test("docs/operations.md lists exactly the metrics that exist, but for those of features", async () => {
  const namesIn = (file: string): string[] =>
    [...readFileSync(`docs/${file}`, "utf8").matchAll(/`((?:dns11|libnetwork_resolver|process)_[a-z_]+)`/g)].map(
      ([, name = ""]) => name,
    );
  const exported = new Set([...(await metrics()).matchAll(/^# TYPE (\S+)/gm)].map(([, name = ""]) => name));
  const documented = new Set(namesIn("operations.md"));
  // Those of a feature are on its own page.
  const onPages = new Set(readdirSync("docs").flatMap((file) => (file.endsWith(".md") ? namesIn(file) : [])));
  for (const name of exported) assert.ok(onPages.has(name), `no page lists ${name}`);
  // A metric without samples is not on the page yet.
  assert.deepEqual(documented, new Set(familiesOf(NO_QUERIES).map(({ name }) => name)));
});

test("failed attachments and repairs are counted by code, and the event lag is measured", async () => {
  assert.equal((await client.enter("nft", [IN_THE_WAY])).code, 0);
  await dns11.waitFor("client", "failed");
  // The log does not repeat the failure. Retries become less frequent, but a change of rules causes one.
  await waitFor("several failures", async () => {
    for (const verb of ["add", "delete"]) await client.enter("nft", [verb, "table", "ip", "other"]);
    return sumOf(await metrics(), "dns11_attach_failures_total") >= LIMITS.logLinesPerSubject + 2 ? true : undefined;
  });
  const lines = dns11.log.split("\n").filter((line) => line.includes("not attached") && line.includes('"client"'));
  // Another test may hold the machine's lock for a moment: that is another failure, and the same one is logged again after it.
  const interruptions = lines.filter((line) => line.includes("RULES_LOCKED")).length;
  assert.ok(lines.length >= 1 && lines.length <= 2 + 2 * interruptions, lines.join("\n"));
  const broken = await metrics();
  assert.ok(sumOf(broken, "dns11_attach_failures_total", { code: "UNVERIFIED" }) >= 1);
  assert.equal(sumOf(broken, "dns11_containers", { state: "failed" }), 1);
  assert.equal(sumOf(broken, "dns11_rule_repairs_total"), 0);
  assert.equal((await client.enter("nft", ["delete table ip early"])).code, 0);
  await dns11.waitFor("client", "attached");
  await waitFor("the repair to be counted", async () =>
    sumOf(await metrics(), "dns11_rule_repairs_total", { code: "UNVERIFIED" }) === 1 ? true : undefined,
  );
  await using _late = await runContainer(engine, { name: "late", networks: ["n1"] });
  await dns11.waitFor("late", "attached");
  await waitFor("the event lag", async () =>
    sumOf(await metrics(), "dns11_event_lag_seconds_count") >= 1 ? true : undefined,
  );
});

test("by default there are no series per container", async () => {
  assert.equal(seriesIn(await metrics()).filter(({ labels }) => "container" in labels).length, 0);
});

test("a metrics address that is not available or in use is an error if it was set explicitly", async () => {
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, "127.0.0.1", resolve));
  const { port } = taken.address() as { port: number };
  try {
    for (const [where, why] of [
      [`127.0.0.1:${port}`, /the address is already in use/],
      ["203.0.113.9:9511", /no interface of this machine has this address/],
    ] as const) {
      const result = await command(["run", "-H", engine.host, "--state-dir", dns11.stateDir, "--metrics-addr", where]);
      assert.equal(result.code, 1);
      assert.match(result.stderr, why);
      assert.match(result.stderr, /--metrics-addr, or off/);
    }
  } finally {
    taken.close();
  }
});

test("an invalid metrics address is refused with a valid example", async () => {
  for (const wrong of ["9511", "localhost:9511", "::1:9511", "127.0.0.1:70000", "fe80::1%eth0:1"]) {
    const result = await command(["run", "--metrics-addr", wrong]);
    assert.equal(result.code, 2, wrong);
    assert.match(result.stderr, /127\.0\.0\.1:9511/);
  }
});

test("ready means that every container is attached or has failed", async () => {
  await waitFor("the other containers to be gone", async () =>
    (await dns11.status()).containers.length === 1 ? true : undefined,
  );
  for (const path of ["/health", "/healthz"]) assert.equal((await page(address, path)).text, "OK\n");
  for (const path of ["/ready", "/readyz"]) {
    const { status, text } = await page(address, path);
    assert.equal(status, 200);
    const report = JSON.parse(text) as LifecycleReport;
    assert.deepEqual([report.ready, report.missing, report.attached], [true, [], 1]);
  }
  assert.equal((await page(address, "/v1/status")).status, 404, "the metrics address does not serve the control API");
});

test("before the engine responds, dns11 is healthy, not ready, and reports what is missing", async () => {
  const socket = join(dns11.stateDir, "silent.sock");
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(socket, resolve));
  taken.on("connection", (connection) => connection.destroy());
  const free = await freePort();
  try {
    await using waiting = new Dns11(`unix://${socket}`, { args: ["--metrics-addr", `127.0.0.1:${free}`] });
    const report = await waitFor(
      "its pages",
      async () => await page(`127.0.0.1:${free}`, "/ready").catch(() => undefined),
    );
    assert.equal(report.status, 503);
    const { ready, phase, missing } = JSON.parse(report.text) as LifecycleReport;
    assert.deepEqual([ready, phase], [false, "starting"]);
    assert.match(missing.join(), /engine|started/);
    assert.equal((await page(`127.0.0.1:${free}`, "/health")).status, 200);
    assert.equal(sumOf(await metrics(`127.0.0.1:${free}`), "dns11_ready"), 0);
    waiting.kill("SIGTERM");
    assert.equal(await waiting.exited, 0);
  } finally {
    taken.close();
  }
});

test("the log is JSON or text, as set by log-format, and metrics can be off", async () => {
  await dns11.logs(/"msg":"serving"\}$/m);
  await dns11.stop();
  await using text = await startDns11(engine, { settings: { "log-format": "text", "metrics.addr": "off" } });
  await text.logs(/^\d\d:\d\d:\d\d info {2}serving engine=.* mode=default/m);
  assert.equal((await text.status()).metrics, null);
  const wrong = await command(["run"], { env: variables({ "log-format": "xml" }) });
  assert.equal(wrong.code, 2);
  assert.match(wrong.stderr, /DNS11_LOG_FORMAT: invalid value "xml": use one of auto, text, json/);
});

/** The first one has ended. The address is that of the file, because the variable is empty. */
async function startSecond(): Promise<Dns11> {
  settings = join(engine.folder, "dns11.yaml");
  writeFileSync(settings, settingsAt("[::1]:0"));
  return await startDns11(engine, {
    args: ["--config", settings],
    settings: { "log-format": "json", "lame-duck": LAME_DUCK, "metrics.addr": "" },
  });
}

function settingsAt(addr: string): string {
  return `version: 1\nmetrics: {addr: "${addr}", containers: ${CONTAINERS_MAX}}\n`;
}

test("metrics can be served at an IPv6 address", async () => {
  second = await startSecond();
  const place = (await second.status()).metrics ?? "";
  assert.match(place, /^\[::1\]:\d+$/);
  assert.equal(sumOf(await metrics(place), "dns11_ready"), 1);
  await second.logs(/^\{"level":"info","time":"\d{4}-.*"msg":"serving"\}$/m);
});

test("containers have their own series up to the limit, and no counter decreases when a container is removed", async () => {
  const mine = second ?? assert.fail();
  const place = (await mine.status()).metrics ?? "";
  const containers = [client];
  for (const name of ["c2", "c3"]) {
    containers.push(await runContainer(engine, { name, networks: ["n1"] }));
    await mine.waitFor(name, "attached");
  }
  for (const one of containers) for (let sent = 0; sent < 3; sent++) await dig(one, one.name);
  const text = await metrics(place);
  const labels = new Set(
    seriesIn(text)
      .filter(({ name }) => name === "dns11_container_requests_total")
      .map((one) => one.labels["container"]),
  );
  assert.deepEqual(labels, new Set(["(other)", "client", "c2"]));
  for (const container of ["client", "c2", "(other)"]) {
    const by = (source: string): number => sumOf(text, "dns11_container_answers_total", { container, by: source });
    // The kernel answers what the process has answered once.
    assert.ok(by("local") + by("kernel") >= 3, container);
  }
  const total = sumOf(text, "dns11_container_requests_total");
  for (const container of containers.slice(1)) await container.remove();
  await waitFor("them to be gone", async () => ((await mine.status()).containers.length === 1 ? true : undefined));
  assert.ok(sumOf(await metrics(place), "dns11_container_requests_total") >= total);
});

test("a reload moves the metrics address, and a reload with a bad address keeps the old one", async () => {
  const mine = second ?? assert.fail();
  writeFileSync(settings, settingsAt("127.0.0.94:0"));
  mine.kill("SIGHUP");
  const moved = await waitFor("another address", async () => {
    const { metrics: now } = await mine.status();
    return now?.startsWith("127.") === true ? now : undefined;
  });
  assert.match(moved, /^127\.0\.0\.94:/);
  await waitFor("the reload", async () =>
    sumOf(await metrics(moved), "dns11_reloads_total") === 1 ? true : undefined,
  );
  writeFileSync(settings, settingsAt("203.0.113.9:9511"));
  mine.kill("SIGHUP");
  await waitFor("the failed reload", async () =>
    sumOf(await metrics(moved), "dns11_reload_failed_total") === 1 ? true : undefined,
  );
  await mine.logs(/no interface of this machine has this address/);
  assert.equal((await mine.status()).metrics, moved);
});

test("after SIGTERM dns11 is not ready, serves for the lame duck period, and exits", async () => {
  const mine = second ?? assert.fail();
  const place = (await mine.status()).metrics ?? "";
  assert.equal((await page(place, "/ready")).status, 200);
  mine.kill("SIGTERM");
  const report = await waitFor("unready", async () => {
    const response = await page(place, "/ready");
    return response.status === 503 ? (JSON.parse(response.text) as LifecycleReport) : undefined;
  });
  assert.deepEqual([report.ready, report.phase], [false, "stopping"]);
  assert.equal((await dig(client, "client")).answer[0]?.ttl, 5, "dns11 answered");
  assert.equal(await inTime(mine.exited, "the end of the lame duck period"), 0);
  await mine.logs(/still serving for the lame duck period.*handing back/s);
  assert.equal((await dig(client, "client")).answer[0]?.ttl, 600, "Docker's resolver answered");
});

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}
