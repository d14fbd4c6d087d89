// From a container's start on one machine to its answer on another: two real engines, a dns11 on each, one etcd. Then the
// same service queried from dns11, which has it in memory, and from a stand-in that asks etcd for each query.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { dataOf, dig } from "../../support/client/dig.ts";
import { createNetwork, runContainer } from "../../support/engine/container.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { Dns11 } from "../../support/program/dns11.ts";
import { inNetns } from "../../support/rig/netns.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { connectByWire } from "../../support/rig/wire.ts";
import { startEtcd, startIn } from "./etcd-server.ts";
import { check } from "../../support/program/command.ts";
import { type Row, median, quantile } from "../../bench/figures.ts";
import { type NameProber, nameProber } from "../../bench/name-prober.ts";

const PER_QUERY = fileURLToPath(new URL("bench-per-query-main.js", import.meta.url));
const STARTS = 50;
const GIVE_UP_MS = 60_000;
const PORT = 5300;
// One after the other.
const QUERIES = 500;
const ZONE = "cluster.test";

export async function benchEtcdEngines(): Promise<Row[]> {
  await using one = await startEngine();
  await using two = await startEngine();
  await using _wire = await connectByWire(
    new Map([
      [one.id, "192.168.78.1/24"],
      [two.id, "192.168.78.2/24"],
    ]),
  );
  await using etcd = await startEtcd(one);
  await check("ip", ["-n", two.id, "route", "add", "10.99.1.0/24", "via", "192.168.78.1"]);
  for (const each of [one, two]) await createNetwork(each, "n1");
  await using first = await started(one, "m1", "192.168.78.1", etcd.endpoints);
  await using second = await started(two, "m2", "192.168.78.2", etcd.endpoints);
  await first.waitUntilReady();
  await second.waitUntilReady();
  const client = await runContainer(two, { name: "client", networks: ["n1"] });
  await second.waitFor("client", "attached");
  const delays: number[] = [];
  const prober = nameProber(client.netnsPath);
  for (let index = 0; index < STARTS; index++) {
    const service = `late${index}`;
    const answered = prober.until(`${service}.shop.svc.${ZONE}`, GIVE_UP_MS);
    const args = ["--publish", `${20_000 + index}:${20_000 + index}`];
    const container = await runContainer(one, { name: service, networks: ["n1"], labels: labelsOf(service), args });
    const { State: state } = await container.inspect();
    delays.push((await answered) - Date.parse(state.StartedAt));
  }
  prober.close();
  const name = `late0.shop.svc.${ZONE}`;
  const prefix = `/skydns/test/cluster/machine/m1/svc/shop/late0/`;
  const words = [PER_QUERY, etcd.endpoints[0] ?? "", prefix, String(PORT)];
  await using perQuery = startIn(two, process.execPath, words);
  await perQuery.until(/ready/);
  await waitFor("the stand-in", async () =>
    dataOf(await dig(two, name, "@127.0.0.1", "-p", String(PORT))).length === 1 ? true : undefined,
  );
  const tookBy = async (asking: NameProber): Promise<number[]> => {
    const all: number[] = [];
    for (let query = 0; query < QUERIES; query++) all.push(await asking.took(name));
    asking.close();
    return all;
  };
  const mine = await tookBy(nameProber(client.netnsPath));
  const theirs = await tookBy(nameProber(two.netnsPath, Uint8Array.of(127, 0, 0, 1), PORT));
  const shown = (all: readonly number[]): string =>
    `p50 ${median(all).toFixed(2)} ms, p99 ${quantile(all, 0.99).toFixed(1)} ms`;
  return [
    {
      what: "a container's start on one machine until it is answered on another",
      measured: `${shown(delays)} of ${STARTS}`,
    },
    { what: "a query for it by dns11, from memory", measured: `${shown(mine)} of ${mine.length}` },
    {
      what: "the same by a stand-in for CoreDNS, one request to etcd each",
      measured: `${shown(theirs)} of ${theirs.length}: ${(median(theirs) / median(mine)).toFixed(1)} times as long`,
    },
  ];
}

function labelsOf(service: string): Record<string, string> {
  return { "io.dns11.project": "shop", "io.dns11.service": service };
}

async function started(engine: Engine, machine: string, address: string, endpoints: readonly string[]): Promise<Dns11> {
  const file = join(engine.folder, "dns11.yaml");
  const etcd = { endpoints, publish: true, machine, address };
  writeFileSync(file, JSON.stringify({ version: 1, zone: ZONE, etcd }));
  const stateDir = join(engine.folder, "state");
  mkdirSync(stateDir, { recursive: true });
  const prefix = inNetns(engine.netnsPath, "env");
  return await Promise.resolve(new Dns11(engine.host, { args: ["--config", file], prefix, stateDir }));
}
