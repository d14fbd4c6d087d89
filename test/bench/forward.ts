// Forwarding: names that nobody here holds, asked anew each time or kept, by dockerd's resolver, dnsmasq, unbound and
// dns11, in the same container through the same address, in turn. dnsmasq and unbound listen at other ports of it, and
// rules of our own lead there, before Docker's. Who answers upstream is quicker than all of them, and costs none of them.

import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { stdoutOf } from "../support/command.ts";
import { type Container, createNetwork, runContainer } from "../support/container.ts";
import { startDns11 } from "../support/dns11.ts";
import { type Engine, startEngine } from "../support/engine.ts";
import { startDnsmasq, startUnbound } from "../support/real-server.ts";
import { type Sample, measure, ratioRow, sideRow } from "./dnsperf.ts";
import type { Row } from "./figures.ts";

const ROUNDS = 5;
const SECONDS = 2;
// For code that is compiled as it runs, and to have kept what is to be kept.
const WARM_SECONDS = 1;
const KEPT_NAMES = 1_000;
const MISSED_NAMES_A_SECOND = 80_000;

const RESOLVER = "127.0.0.11";
const [DNSMASQ_PORT, UNBOUND_PORT] = [5301, 5302];
// As the host's server, and as the container's own, for those who ask from there: each over a loopback.
const [HOST_UPSTREAM, OWN_UPSTREAM] = ["10.53.0.1", "127.1.0.1"];
const UPSTREAM_LINES = ["local-zone: test. redirect", 'local-data: "test. 3600 A 192.0.2.1"'];
const DNSMASQ_LINES = [`server=${OWN_UPSTREAM}`, "cache-size=10000", "dns-forward-max=1000"];
const UNBOUND_LINES = [
  "msg-cache-size: 64m",
  "rrset-cache-size: 64m",
  "num-queries-per-thread: 2048",
  "outgoing-range: 4096",
  "forward-zone:",
  'name: "."',
  `forward-addr: ${OWN_UPSTREAM}`,
];

const SIDES = ["dockerd", "dnsmasq", "unbound", "dns11"] as const;
const KINDS = ["missed", "kept"] as const;
type Samples = Record<(typeof SIDES)[number], Sample[]>;

export async function benchForward(): Promise<Row[]> {
  await using engine = await startEngine({ suite: "forky", resolvConf: `nameserver ${HOST_UPSTREAM}\n` });
  await using _upstream = await startUnbound(engine, { address: HOST_UPSTREAM, lines: UPSTREAM_LINES });
  await createNetwork(engine, "n1");
  const client = await runContainer(engine, { name: "client", networks: ["n1"] });
  await using _own = await startUnbound(client, { address: OWN_UPSTREAM, lines: UPSTREAM_LINES });
  const at = { address: RESOLVER };
  await using dnsmasq = await startDnsmasq(client, { ...at, port: DNSMASQ_PORT, lines: DNSMASQ_LINES });
  await using unbound = await startUnbound(client, { ...at, port: UNBOUND_PORT, lines: UNBOUND_LINES });

  const questions = new Questions(engine);
  const samples = { missed: noSamples(), kept: noSamples() };
  const round = async (side: keyof Samples, pid: number): Promise<void> => {
    for (const kind of KINDS) {
      await measure(client, questions[kind](WARM_SECONDS), pid, WARM_SECONDS);
      samples[kind][side].push(await measure(client, questions[kind](SECONDS), pid, SECONDS));
    }
  };
  for (let left = ROUNDS; left > 0; left--) {
    await round("dockerd", engine.pid);
    await leadTo(client, DNSMASQ_PORT);
    await round("dnsmasq", dnsmasq.pid);
    await leadTo(client, UNBOUND_PORT);
    await round("unbound", unbound.pid);
    await leadTo(client, undefined);
    await using instance = await startDns11(engine);
    await round("dns11", instance.pid);
    await instance.stop();
  }
  const { missed, kept } = samples;
  const sides = (what: string, all: Samples): Row[] => SIDES.map((side) => sideRow(`${what}: ${side}`, all[side]));
  return [
    ...sides("forwarded, asked anew", missed),
    ratio("forwarded, asked anew", missed, "dockerd", "perSecond", { least: 2 }),
    ratio("forwarded, asked anew", missed, "dockerd", "cpuMicros", { most: 0.4 }),
    ...sides("forwarded, kept", kept),
    ratio("forwarded, kept", kept, "dockerd", "perSecond", { least: 5 }),
    ratio("forwarded, kept", kept, "unbound", "cpuMicros", { most: 1.25 }),
  ];
}

function noSamples(): Samples {
  return { dockerd: [], dnsmasq: [], unbound: [], dns11: [] };
}

function ratio(
  what: string,
  samples: Samples,
  side: keyof Samples,
  figure: "perSecond" | "cpuMicros",
  bound: Parameters<typeof ratioRow>[3],
): Row {
  const called = figure === "perSecond" ? "queries/s" : "CPU a query";
  return ratioRow(`${what}: ${called}, dns11 : ${side}`, figure, [samples.dns11, samples[side]], bound);
}

// The files that dnsperf reads.
class Questions {
  readonly #kept: string;
  readonly #missed: string;
  #files = 0;

  constructor({ folder }: Engine) {
    this.#kept = join(folder, "kept");
    this.#missed = join(folder, "missed");
    writeFileSync(this.#kept, namesOf("kept", KEPT_NAMES));
  }

  kept(): string {
    return this.#kept;
  }

  // More than anybody can ask in that time, and none that was asked before.
  missed(seconds: number): string {
    writeFileSync(this.#missed, namesOf(`missed${(this.#files += 1)}`, MISSED_NAMES_A_SECOND * seconds));
    return this.#missed;
  }
}

function namesOf(word: string, count: number): string {
  return Array.from({ length: count }, (_, index) => `${word}-${index}.test A\n`).join("");
}

// Queries of the container go to this port of the resolver's address, or again where they went before.
async function leadTo(client: Container, port: number | undefined): Promise<void> {
  const rules = ["add table ip beside", "delete table ip beside", ...(port === undefined ? [] : leading(port))];
  stdoutOf(await client.enter("nft", ["-f", "-"], { input: `${rules.join("\n")}\n` }), "nft");
}

function leading(port: number): string[] {
  return [
    "add table ip beside",
    "add chain ip beside output { type nat hook output priority -110; }",
    `add rule ip beside output ip daddr ${RESOLVER} udp dport 53 dnat to ${RESOLVER}:${port}`,
  ];
}
