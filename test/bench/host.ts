// Names on the host: the latency of outside names for a program there, with and without them. The server is dnsmasq in the
// host's namespace; three networks with /20 subnets make the rules as long as they get on usual machines.

import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { createNetwork, runContainer } from "../support/engine/container.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { startDns11 } from "../support/program/dns11.ts";
import { startDnsmasq } from "../support/servers/real-server.ts";
import { steadily } from "./dnsperf.ts";
import { type Row, median, readable, spreadOf } from "./figures.ts";
import { RESOLVER } from "./redirect.ts";

const ROUNDS = 5;
const SECONDS = 3;
const RATIO_MAX = 1.15;

export async function benchHost(): Promise<Row[]> {
  await using engine = await startEngine({ hasControlGroup: true, resolvConf: `nameserver ${RESOLVER}\n` });
  await using _ = await startDnsmasq(engine, { address: RESOLVER, lines: ["address=/outside.test/192.0.2.1"] });
  for (let index = 0; index < 3; index++) {
    await createNetwork(engine, `n${index}`, { subnet: `10.${index}.16.0/20` });
    await runContainer(engine, { name: `c${index}`, networks: [`n${index}`] });
  }
  const off: Figures = { p50: [], lost: 0 };
  const on: Figures = { p50: [], lost: 0 };
  const own: Figures = { p50: [], lost: 0 };
  for (let round = 0; round < ROUNDS; round++) {
    await measure(engine, "www.outside.test", off);
    await using instance = await startDns11(engine, { args: ["--host-names"] });
    await instance.waitFor("host", "attached");
    await measure(engine, "www.outside.test", on);
    await measure(engine, "c0.docker", own);
  }
  const ratio = median(on.p50) / median(off.p50);
  return [
    { what: "outside name on the host without host names, p50", measured: micros(off) },
    { what: "outside name on the host with host names, p50", measured: micros(on) },
    {
      what: "with, against without",
      measured: `${ratio.toFixed(2)} x`,
      target: `<= ${RATIO_MAX} x`,
      isReached: ratio <= RATIO_MAX,
    },
    { what: "outside names lost with host names", measured: String(on.lost), target: "0", isReached: on.lost === 0 },
    { what: "container name on the host, p50", measured: micros(own) },
  ];
}

type Figures = { readonly p50: number[]; lost: number };

async function measure(engine: Engine, name: string, figures: Figures): Promise<void> {
  const file = join(engine.folder, "queries");
  writeFileSync(file, `${name} A\n`);
  const { p50Ms, lost } = await steadily(engine, { file, rcode: "NOERROR" }, SECONDS);
  figures.p50.push((p50Ms ?? Number.NaN) * 1_000);
  figures.lost += lost ?? 0;
}

function micros({ p50 }: Figures): string {
  return `${readable(spreadOf(p50), 0)} us`;
}
