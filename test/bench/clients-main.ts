// make clients: what the resolvers of programs do when names fail, as the table of docs/internals/measurements.md: each preset and fault against
// each client. Prints the table. The times are those of the clients' own timers, which last seconds.

import { setTimeout as sleep } from "node:timers/promises";

import { type Lab, connect } from "dns11/client";

import { createNetwork } from "../support/engine/container.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { startDns11 } from "../support/program/dns11.ts";
import { type Client, Lookups, startClients } from "./clients/client.ts";

const FIRST = { a: ["192.0.2.1"], aaaa: ["2001:db8::1"], ttl: 1 };
const SECOND = { a: ["192.0.2.2"], aaaa: ["2001:db8::2"], ttl: 1 };
/** Longer than any client is known to keep an address that it does not keep for ever. */
const KEEPS_SECONDS = 45;
const FLAPS = 4;

interface Bench {
  readonly engine: Engine;
  readonly lab: Lab;
  /** How many queries for a name there have been. */
  readonly queried: (name: string) => Promise<number>;
}

type Column = readonly [string, (bench: Bench, client: Client, name: string) => Promise<string>];

const fails =
  (fault: Parameters<Lab["fault"]>[1]) =>
  async ({ engine, lab, queried }: Bench, client: Client, name: string): Promise<string> => {
    await lab.answer(name, FIRST);
    await lab.fault(name, fault);
    await using lookups = new Lookups(engine, client);
    await warm(lookups);
    const { addresses, error, ms } = await lookups.find(name);
    const count = await queried(name);
    const result = error === undefined ? kindsOf(addresses) : "fails";
    return `${result}, ${(ms / 1000).toFixed(1)} s, ${count}`;
  };

const COLUMNS: readonly Column[] = [
  ["`five-seconds`", fails({ preset: "five-seconds" })],
  ["`dead-first-server`", fails({ preset: "dead-first-server" })],
  [
    `\`flap\`: ${FLAPS} lookups`,
    async ({ engine, lab }, client, name) => {
      await lab.answer(name, FIRST);
      await lab.fault(name, { preset: "flap" });
      await using lookups = new Lookups(engine, client);
      await warm(lookups);
      const results: string[] = [];
      for (let i = 0; i < FLAPS; i++) results.push((await lookups.find(name)).error === undefined ? "yes" : "no");
      return results.join(", ");
    },
  ],
  ["`drop` of AAAA alone", fails({ drop: { types: ["AAAA"] } })],
  ["`servfail`", fails({ servfail: true })],
  ["`truncate`", fails({ truncate: true })],
  ["`drop`", fails({ drop: true })],
  [
    "keeps an address with a TTL of 1 s",
    async ({ engine, lab }, client, name) => {
      const first = await lab.answer(name, FIRST);
      await using lookups = new Lookups(engine, client);
      const { addresses } = await lookups.find(name);
      await lab.answer(name, SECOND);
      await first.remove();
      return await keeps(async () => (await lookups.find(name)).addresses.every((each) => addresses.includes(each)));
    },
  ],
  [
    "keeps NXDOMAIN",
    async ({ engine, lab }, client, name) => {
      await lab.answer(name, FIRST);
      const rule = await lab.fault(name, { nxdomain: true });
      await using lookups = new Lookups(engine, client);
      await lookups.find(name);
      await rule.remove();
      return await keeps(async () => (await lookups.find(name)).error !== undefined);
    },
  ],
];

/** What the program does once is not measured. */
async function warm(lookups: Lookups): Promise<void> {
  await lookups.find("localhost");
}

function kindsOf(addresses: readonly string[]): string {
  const has4 = addresses.some((each) => each.includes("."));
  const has6 = addresses.some((each) => each.includes(":"));
  return has4 && has6 ? "both" : has4 ? "IPv4" : "IPv6";
}

async function keeps(isOld: () => Promise<boolean>): Promise<string> {
  const beganMs = performance.now();
  const seconds = (): number => (performance.now() - beganMs) / 1000;
  if (!(await isOld())) return "no";
  while (seconds() < KEEPS_SECONDS) {
    await sleep(500);
    if (!(await isOld())) return `${seconds().toFixed(0)} s`;
  }
  return `over ${KEEPS_SECONDS} s`;
}

async function main(): Promise<void> {
  await using engine = await startEngine({ suite: "bookworm" });
  await createNetwork(engine, "n1");
  const clients = await startClients(engine, "n1");
  await using instance = await startDns11(engine);
  const dns = await connect({ engine: engine.host, stateDir: instance.stateDir });
  const lab = await dns.lab();
  const tape = await lab.record();
  const queried = async (name: string): Promise<number> => {
    // What is recorded comes a little later.
    await sleep(500);
    return tape.queries.filter((each) => each.name === name).length;
  };
  const bench = { engine, lab, queried };
  const rows = await Promise.all(
    clients.map(async (client, index) => {
      const cells: string[] = [];
      for (const [at, [title, measure]] of COLUMNS.entries()) {
        cells.push(await measure(bench, client, `c${at}.client${index}.test`));
        console.error(`clients: ${client.name}: ${title}: ${cells.at(-1)}`);
      }
      return [`${client.name} (${client.version})`, ...cells];
    }),
  );
  await lab.close();
  dns.close();
  const titles = ["Client", ...COLUMNS.map(([title]) => title)];
  console.log(`${new Date().toISOString().slice(0, 10)}, a container of Docker ${engine.version}\n`);
  for (const row of [titles, titles.map(() => "---"), ...rows]) console.log(`| ${row.join(" | ")} |`);
}

await main();
