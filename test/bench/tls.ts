// A cache miss that a server answers by TLS, beside one by TCP: queries for ever new names at a rate at which hardly two are in
// flight, from two containers in turns. One unbound answers both from its own data, so that what differs is the way to it.

import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { check } from "../support/program/command.ts";
import { startDns11 } from "../support/program/dns11.ts";
import { startEngine } from "../support/engine/engine.ts";
import { makeFolder } from "../support/rig/folder.ts";
import { Authority } from "../support/servers/authority.ts";
import { startUnbound } from "../support/servers/real-server.ts";
import { steadily } from "./dnsperf.ts";
import { type Row, readable, spreadOf } from "./figures.ts";
import type { Pace } from "./pace.ts";

const ADDRESS = "10.53.1.1";
const NAME = "dns.test";
const RATIO_MAX = 1.2;
const PER_SECOND = 400;
const SECONDS = 1;

export async function benchTls({ rounds }: Pick<Pace, "rounds">): Promise<Row[]> {
  const folder = makeFolder("tls");
  const authority = await Authority.make(join(folder, "authority"));
  const { cert, key } = await authority.sign({ names: [`DNS:${NAME}`] });
  await using engine = await startEngine({ suite: "bookworm" });
  await using server = await startUnbound(engine, {
    address: ADDRESS,
    lines: [
      `interface: ${ADDRESS}@853`,
      "tls-port: 853",
      `tls-service-pem: "${cert}"`,
      `tls-service-key: "${key}"`,
      "local-zone: ok.test. redirect",
      `local-data: "ok.test. 300 A 192.0.2.1"`,
    ],
  });
  await createNetwork(engine, "n1");
  const settings = { "forward.tcp": "true", "forward.tls-ca": authority.file, "label-servers": "any" };
  await using instance = await startDns11(engine, { settings });
  const clients: Record<"tcp" | "tls", Container> = {
    tcp: await runContainer(engine, { networks: ["n1"], labels: { "io.dns11.dns": ADDRESS } }),
    tls: await runContainer(engine, { networks: ["n1"], labels: { "io.dns11.dns": `tls://${ADDRESS}#${NAME}` } }),
  };
  for (const { name } of Object.values(clients)) await instance.waitFor(name, "attached");
  // As for dnsperf: what is measured is the way, and not who else wants a processor.
  for (const pid of [server.pid, instance.pid]) await check("chrt", ["--all-tasks", "--rr", "--pid", "1", String(pid)]);
  let turns = 0;
  const p50Of = async (by: "tcp" | "tls"): Promise<number> => {
    const file = join(folder, `names${(turns += 1)}`);
    const names = Array.from({ length: PER_SECOND * SECONDS }, (_, index) => `n${index}.r${turns}.ok.test A`);
    writeFileSync(file, `${names.join("\n")}\n`);
    const { p50Ms = Number.NaN } = await steadily(clients[by], { file, rcode: "NOERROR" }, SECONDS, PER_SECOND);
    return p50Ms;
  };
  // What is compiled while it runs is compiled by then.
  for (const by of ["tcp", "tls", "tcp", "tls"] as const) await p50Of(by);
  const [tcp, tls, ratios]: number[][] = [[], [], []];
  for (let round = 0; round < 3 * rounds; round++) {
    const [one, other] = round % 2 === 0 ? (["tcp", "tls"] as const) : (["tls", "tcp"] as const);
    const found = { [one]: await p50Of(one), [other]: await p50Of(other) } as Record<"tcp" | "tls", number>;
    tcp?.push(found.tcp);
    tls?.push(found.tls);
    ratios?.push(found.tls / found.tcp);
  }
  const ratio = spreadOf(ratios ?? []);
  await instance.stop();
  return [
    { what: "p50 of a cache miss by TCP, ms", measured: readable(spreadOf(tcp ?? []), 3) },
    { what: "the same by TLS, ms", measured: readable(spreadOf(tls ?? []), 3) },
    {
      what: "by TLS / by TCP",
      measured: readable(ratio, 2),
      target: `at most ${RATIO_MAX}`,
      isReached: ratio.median <= RATIO_MAX,
    },
  ];
}
