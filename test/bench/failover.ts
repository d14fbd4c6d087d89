// Upstream servers that fail under load: queries for ever new names while the first of two servers is dead, and for a
// minute while two of three flap. dockerd's resolver, dnsmasq and dns11 run at the same time, each in its own container
// whose servers play the same scenario.

import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { startDns11 } from "../support/program/dns11.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { startDnsmasq } from "../support/servers/real-server.ts";
import { startScripted } from "../support/scripted/scripted.ts";
import { type StormOptions, type StormReport, failuresOf, readableStorm, storm } from "../support/scripted/storm.ts";
import type { Row } from "./figures.ts";

const LOOPBACKS = ["127.1.0.1", "127.1.0.2", "127.1.0.3"];
const DNSMASQ_PORT = 5301;
const SIDES = ["dockerd", "dnsmasq", "dns11"] as const;

type Trial = {
  readonly what: string;
  readonly servers: number;
  readonly scenario: string;
  readonly load: StormOptions["load"];
  // Answer of the server that works.
  readonly address: string;
  readonly p99MsMax: number;
};

const DEAD = { servers: 2, load: { count: 2_000, atOnce: 200 }, address: "192.0.2.2", p99MsMax: 1_000 };
const TRIALS: readonly Trial[] = [
  { ...DEAD, what: "first of two servers silent", scenario: "server 1: silent\nserver 2: ok" },
  { ...DEAD, what: "first of two servers closed", scenario: "server 1: closed\nserver 2: ok" },
  {
    what: "two of three servers flapping for a minute",
    servers: 3,
    scenario: "flapping.scn",
    load: { perSecond: 200, forMs: 60_000 },
    address: "192.0.2.3",
    p99MsMax: 1_000,
  },
];

export async function benchFailover(): Promise<Row[]> {
  await using engine = await startEngine({ suite: "forky" });
  await createNetwork(engine, "n1");
  await using instance = await startDns11(engine);
  const rows: Row[] = [];
  for (const trial of TRIALS) {
    const reports = await Promise.all(SIDES.map(async (side) => await stormOf(engine, side, trial)));
    for (const [index, report] of reports.entries()) rows.push(rowOf(trial, SIDES[index] ?? "", report));
  }
  await instance.stop();
  return rows;
}

async function stormOf(engine: Engine, side: (typeof SIDES)[number], trial: Trial): Promise<StormReport> {
  const { scenario, load } = trial;
  const addresses = LOOPBACKS.slice(0, trial.servers);
  const labels: Record<string, string> = side === "dns11" ? {} : { "io.dns11.enable": "false" };
  await using container: Container = await runContainer(engine, { networks: ["n1"], dns: addresses, labels });
  await using _servers = await startScripted(container, scenario, { addresses });
  if (side !== "dnsmasq") return await storm(container, { suffix: "failing.test", load });
  const lines = [...addresses.map((address) => `server=${address}`), "dns-forward-max=1000"];
  await using _dnsmasq = await startDnsmasq(container, { address: "127.0.0.11", port: DNSMASQ_PORT, lines });
  return await storm(container, { suffix: "failing.test", load, port: DNSMASQ_PORT });
}

function rowOf({ what, address, p99MsMax }: Trial, side: string, report: StormReport): Row {
  const row = { what: `${what}: ${side}`, measured: readableStorm(report) };
  if (side !== "dns11") return row;
  const isReached = failuresOf(report, address) === "" && report.p99Ms <= p99MsMax;
  return { ...row, target: `none failed, p99 <= ${p99MsMax} ms`, isReached };
}
