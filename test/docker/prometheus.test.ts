// The Grafana dashboard and the alert rules in scripts/: a real Prometheus scrapes a real dns11 and answers every query of both, an
// alert sees a real condition, and promtool makes each of them fire.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";

import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { dig } from "../support/client/dig.ts";
import { run } from "../support/program/command.ts";
import { type Dns11, startDns11 } from "../support/program/dns11.ts";
import { Prometheus } from "../support/program/prometheus.ts";
import { inNetns } from "../support/rig/netns.ts";
import { waitFor } from "../support/rig/wait.ts";
import { type Upstream, startUpstream } from "../support/servers/upstream.ts";

const RULES = resolve("scripts/prometheus/alerts.yaml");
const SERVER = "10.53.0.1";
const METRICS = "127.0.0.1:9511";
/** What has no series as long as nothing of that kind has happened. */
const MAY_BE_EMPTY = /attach_failures|rule_repairs|proxy_failures/;

let engine: Engine;
let upstream: Upstream;
let instance: Dns11;
let client: Container;
let prometheus: Prometheus;

before(async () => {
  engine = await startEngine({ resolvConf: `nameserver ${SERVER}\n` });
  upstream = await startUpstream(engine, { address: SERVER });
  await createNetwork(engine, "n1");
  client = await runContainer(engine, { name: "client", networks: ["n1"] });
  const settings = join(engine.folder, "dns11.yaml");
  writeFileSync(settings, `version: 1\nmetrics: {addr: "${METRICS}", containers: 5}\n`);
  // Where Prometheus is, so that it can scrape loopback.
  instance = await startDns11(engine, {
    prefix: inNetns(engine.netnsPath, "env"),
    env: { DNS11_METRICS_ADDR: "" },
    args: ["--config", settings],
  });
  await instance.waitFor("client", "attached");
  prometheus = new Prometheus(engine, METRICS, RULES);
});
after(async () => {
  await prometheus[Symbol.asyncDispose]();
  await instance[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

interface Dashboard {
  readonly panels: readonly { readonly title: string; readonly targets: readonly { readonly expr: string }[] }[];
  readonly templating: { readonly list: readonly { readonly query: string }[] };
}

/** The queries of all panels, with the variables as Grafana fills them in. */
function dashboardQueries(): string[] {
  const { panels, templating } = JSON.parse(readFileSync("scripts/grafana/dns11.json", "utf8")) as Dashboard;
  const variables = templating.list.flatMap(({ query }) => /^label_values\((.+), \w+\)$/.exec(query)?.[1] ?? []);
  const all = [...panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)), ...variables];
  return all.map((expr) => expr.replaceAll("$__rate_interval", "1m").replaceAll(/\$(?:job|instance)/g, ".*"));
}

test("every query of the dashboard has a result", async () => {
  const queries = dashboardQueries();
  assert.ok(queries.length > 30);
  let missing = queries;
  const areAnswered = async (): Promise<true | undefined> => {
    // A rate needs several scrapes with different counters.
    for (const name of ["client", `n${Date.now()}.ok.test`, "n1.ok.test", "x.nx.test"]) await dig(client, name);
    const results = await prometheus.query(queries).catch((error: unknown) => {
      if (String(error).includes("parse error")) throw error;
      // It does not listen yet.
      return undefined;
    });
    if (results === undefined) return undefined;
    missing = queries.filter((query, at) => results[at]?.length === 0 && !MAY_BE_EMPTY.test(query));
    return missing.length === 0 ? true : undefined;
  };
  await waitFor("all queries to have a result", areAnswered).catch((error: unknown) => {
    throw new Error(`no result: ${missing.join("; ")}`, { cause: error });
  });
});

test("every rule is evaluated, none is active while all is well, and real conditions make alerts pending", async () => {
  // On a busy machine a scrape may be late, which is a condition of its own.
  const quiet = await waitFor("the rules to be evaluated", async () => {
    const all = await prometheus.alerts();
    return all.every(({ health, state }) => health === "ok" && state === "inactive") ? all : undefined;
  });
  assert.ok(quiet.length > 8);
  await upstream[Symbol.asyncDispose]();
  await waitFor("the alerts of the nameserver", async () => {
    await dig(client, "+time=1", "+tries=1", `d${Date.now()}.ok.test`);
    const active = (await prometheus.alerts()).filter(({ state }) => state !== "inactive");
    const names = new Set(active.map(({ name }) => name));
    return names.has("Dns11NameserverDown") && names.has("Dns11AllNameserversDown") ? true : undefined;
  });
  upstream = await startUpstream(engine, { address: SERVER });
  await instance.stop();
  await waitFor("the alert that dns11 is down", async () => {
    const down = (await prometheus.alerts()).find(({ name }) => name === "Dns11Down");
    return down?.state === "inactive" ? undefined : down;
  });
});

test("each alert fires as its test expects, and no alert lacks one", async () => {
  const { code, stdout, stderr } = await run("promtool", ["test", "rules", "scripts/prometheus/alerts-test.yaml"]);
  assert.equal(code, 0, stdout + stderr);
  const names = [...readFileSync(RULES, "utf8").matchAll(/- alert: (\w+)/g)].map(([, name]) => name);
  const fired = readFileSync("scripts/prometheus/alerts-test.yaml", "utf8");
  for (const name of names) assert.match(fired, new RegExp(`alertname: ${name}\\n +exp_alerts:`));
});
