// Names on the host: the latency of outside names for a program there, with and without them, by both means. Three networks
// with /20 subnets make the rules, and the domains of the link, as long as they get on usual machines.

import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { createNetwork, runContainer } from "../../support/engine/container.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { startDns11 } from "../../support/program/dns11.ts";
import { startDnsmasq } from "../../support/servers/real-server.ts";
import { STUB, startResolved, startSystemBus } from "./resolved.ts";
import { steadily } from "../../bench/dnsperf.ts";
import type { FeaturePart } from "../../bench/feature-parts.ts";
import { type Row, median, readable, spreadOf } from "../../bench/figures.ts";
import { RESOLVER } from "../../bench/redirect.ts";

const ROUNDS = 5;
const SECONDS = 3;
const RATIO_MAX = 1.15;
const UPSTREAM = "10.53.0.1";
// The second one is what resolved is asked when it starts.
const OUTSIDE = ["address=/outside.test/192.0.2.1", "address=/ok.test/192.0.2.1"];

export const parts: readonly FeaturePart[] = [
  ["host", "Names on the host", async () => [...(await benchCapture()), ...(await benchResolved())]],
];

// The host's server is dnsmasq.
async function benchCapture(): Promise<Row[]> {
  await using engine = await startEngine({
    suite: "bookworm",
    hasControlGroup: true,
    resolvConf: `nameserver ${RESOLVER}\n`,
  });
  await makeNetworks(engine);
  await using _ = await startDnsmasq(engine, { address: RESOLVER, lines: OUTSIDE });
  return await benchMeans(engine, "capture", RESOLVER);
}

// The host's server is systemd-resolved, whose server is dnsmasq.
async function benchResolved(): Promise<Row[]> {
  await using engine = await startEngine({
    suite: "bookworm",
    hasControlGroup: true,
    resolvConf: `nameserver ${STUB}\n`,
  });
  // systemd-resolved resolves nothing before a link has an address.
  await makeNetworks(engine);
  await using _ = await startDnsmasq(engine, { address: UPSTREAM, lines: OUTSIDE });
  await using bus = await startSystemBus(engine, "bookworm");
  await using __ = await startResolved(engine, UPSTREAM, [], bus);
  return await benchMeans(engine, "resolved", STUB);
}

async function makeNetworks(engine: Engine): Promise<void> {
  for (let index = 0; index < 3; index++) {
    await createNetwork(engine, `n${index}`, { subnet: `10.${index}.16.0/20` });
    await runContainer(engine, { name: `c${index}`, networks: [`n${index}`] });
  }
}

async function benchMeans(engine: Engine, means: "capture" | "resolved", server: string): Promise<Row[]> {
  const off: Figures = { p50: [], lost: 0 };
  const on: Figures = { p50: [], lost: 0 };
  const own: Figures = { p50: [], lost: 0 };
  for (let round = 0; round < ROUNDS; round++) {
    await measure(engine, server, "www.outside.test", off);
    await using instance = await startDns11(engine, { args: [`--host-names=${means}`] });
    await instance.waitFor("host", "attached");
    await measure(engine, server, "www.outside.test", on);
    await measure(engine, server, "c0.docker", own);
  }
  const ratio = median(on.p50) / median(off.p50);
  return [
    { what: `${means}: outside name on the host without host names, p50`, measured: micros(off) },
    { what: `${means}: outside name on the host with host names, p50`, measured: micros(on) },
    {
      what: `${means}: with, against without`,
      measured: `${ratio.toFixed(2)} x`,
      target: `<= ${RATIO_MAX} x`,
      isReached: ratio <= RATIO_MAX,
    },
    {
      what: `${means}: outside names lost with host names`,
      measured: String(on.lost),
      target: "0",
      isReached: on.lost === 0,
    },
    { what: `${means}: container name on the host, p50`, measured: micros(own) },
  ];
}

type Figures = { readonly p50: number[]; lost: number };

async function measure(engine: Engine, server: string, name: string, figures: Figures): Promise<void> {
  const file = join(engine.folder, "queries");
  writeFileSync(file, `${name} A\n`);
  const { p50Ms, lost } = await steadily(engine, { file, rcode: "NOERROR", server }, SECONDS);
  figures.p50.push((p50Ms ?? Number.NaN) * 1_000);
  figures.lost += lost ?? 0;
}

function micros({ p50 }: Figures): string {
  return `${readable(spreadOf(p50), 0)} us`;
}
