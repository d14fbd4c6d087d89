// Upstream servers that fail under load: queries for ever new names while the first of two or three servers is dead, slow or flaps,
// and for a minute while two of three flap. dockerd's resolver, dnsmasq and dns11 run at the same time, each in its own container
// whose servers play the same scenario.

import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { startDns11 } from "../support/program/dns11.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { startDnsmasq } from "../support/servers/real-server.ts";
import { startScripted } from "../support/scripted/scripted.ts";
import {
  SLOW_MS,
  type StormOptions,
  type StormReport,
  failuresOf,
  readableStorm,
  storm,
} from "../support/scripted/storm.ts";
import type { Row } from "./figures.ts";

const LOOPBACKS = ["127.1.0.1", "127.1.0.2", "127.1.0.3"];
const DNSMASQ_PORT = 5301;
const SIDES = ["dockerd", "dnsmasq", "dns11"] as const;

type Trial = {
  readonly what: string;
  readonly servers: number;
  readonly scenario: string;
  readonly load: StormOptions["load"];
  // Answers of the servers that work.
  readonly addresses: readonly string[];
  // Where nothing works for a moment, and a server's silence shows only after a second.
  readonly p99MsMax: number;
  // All other answers take milliseconds.
  readonly slowMax?: number;
};

const [FIRST, SECOND, THIRD] = ["192.0.2.1", "192.0.2.2", "192.0.2.3"] as const;
const DEAD = { servers: 2, load: { count: 2_000, atOnce: 200 }, addresses: [SECOND], p99MsMax: 1_500 };
// As many as a machine with some busy containers has.
const STEADY = { load: { perSecond: 50, forMs: 12_000 }, p99MsMax: 1_500 };
const ONE_FAILS = [2, 3].flatMap((servers): Trial[] => {
  const first = `first of ${servers === 2 ? "two" : "three"} servers`;
  const others = Array.from({ length: servers - 1 }, (_, index) => `server ${index + 2}: ok`).join("\n");
  const trial = { ...STEADY, servers };
  return [
    {
      ...trial,
      what: `${first} dead, 50 queries a second`,
      scenario: `server 1: silent\n${others}`,
      addresses: [SECOND],
      slowMax: 1.5 * STEADY.load.perSecond,
    },
    {
      ...trial,
      what: `${first} takes 300 ms`,
      scenario: `server 1: slow 300ms\n${others}`,
      addresses: [FIRST],
      p99MsMax: 600,
    },
    {
      ...trial,
      what: `${first} silent for 2 of 4 seconds`,
      scenario: `server 1\nfor 2s ok\nfor 2s silent\nloop\n${others}`,
      addresses: [FIRST, SECOND],
    },
  ];
});
const TRIALS: readonly Trial[] = [
  ...ONE_FAILS,
  { ...DEAD, what: "first of two servers silent", scenario: "server 1: silent\nserver 2: ok" },
  { ...DEAD, what: "first of two servers closed", scenario: "server 1: closed\nserver 2: ok" },
  {
    what: "two of three servers flapping for a minute",
    servers: 3,
    scenario: "flapping.scn",
    load: { perSecond: 200, forMs: 60_000 },
    addresses: [THIRD],
    p99MsMax: 1_500,
  },
];

export async function benchFailover(): Promise<Row[]> {
  await using engine = await startEngine();
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

function rowOf({ what, addresses, p99MsMax, slowMax }: Trial, side: string, report: StormReport): Row {
  const row = { what: `${what}: ${side}`, measured: readableStorm(report) };
  if (side !== "dns11") return row;
  const hasAnswers = failuresOf(report, ...addresses) === "" && report.p99Ms <= p99MsMax;
  if (slowMax === undefined) return { ...row, target: `none failed, p99 <= ${p99MsMax} ms`, isReached: hasAnswers };
  const target = `none failed, at most ${slowMax} over ${SLOW_MS} ms`;
  return { ...row, target, isReached: hasAnswers && report.slow.count <= slowMax };
}
