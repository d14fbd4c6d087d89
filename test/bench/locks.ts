// What others notice of a container that holds the lock of its nftables rules, behind a rule that breaks its own queries, so that
// dns11 has to change something there. Either eight processes load sets of 400,000 elements at once, again and again, which also takes
// all processors of a small machine; or one process holds the lock all the time and uses none. Beside it a container sends 200 queries a
// second and waits for none of them: names of containers, cached ones, and new ones. The same load in a container that dns11
// leaves alone shows what the machine makes of it.

import { setTimeout as sleep } from "node:timers/promises";

import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { type QueryEnd, queryLoop } from "../support/client/query-loop.ts";
import { startDns11 } from "../support/program/dns11.ts";
import { LockHolder } from "../support/program/lock-holder.ts";
import { startUpstream } from "../support/servers/upstream.ts";
import { type Row, quantile } from "./figures.ts";

const WRITERS = 8;
const ELEMENTS = 400_000;
const PER_SECOND = 67;
const LONGER_MS = 20;
// Longer than any query takes: an attack ends with its last set.
const WRITER_TIMEOUT_MS = 120_000;
const BREAKS =
  "table ip broken { chain c { type filter hook output priority -400; udp dport 53 drop; tcp dport 53 drop; }; }";

const QUERIES = {
  "container names": { name: "web" },
  "cached names": { name: "kept.ok.test" },
  "new names": { name: "ok.test", isEachNew: true },
} as const;
type Kind = keyof typeof QUERIES;
const KINDS = Object.keys(QUERIES) as Kind[];

/** What a container does to its lock until then. */
type Attack = (attacker: Container, untilMs: number) => Promise<void>;

const ATTACKS: Readonly<Record<string, Attack>> = {
  "eight writers": async (attacker, untilMs) => {
    await Promise.all(Array.from({ length: WRITERS }, async (_, index) => await write(attacker, index, untilMs)));
  },
  "one holder": async (attacker, untilMs) => {
    await using _ = await LockHolder.in(attacker.netnsPath);
    await sleep(untilMs - performance.now());
  },
};

export async function benchLocks(seconds: number): Promise<Row[]> {
  const rows: Row[] = [];
  await using engine = await startEngine({ suite: "bookworm" });
  await using _ = await startUpstream(engine);
  await createNetwork(engine, "victims");
  await createNetwork(engine, "attackers");
  await runContainer(engine, { name: "web", networks: ["victims"] });
  const asker = await runContainer(engine, { name: "asker", networks: ["victims"] });
  const labels = { "io.dns11.enable": "false" };
  for (const [what, attack] of Object.entries(ATTACKS)) {
    for (const answers of ["process", "kernel"]) {
      const alone = await runContainer(engine, { name: "alone", networks: ["attackers"], labels });
      const served = await runContainer(engine, { name: "served", networks: ["attackers"] });
      const load = { answers, asker, attack, seconds };
      const before = await under(engine, { ...load, attacker: alone });
      const during = await under(engine, { ...load, attacker: served });
      for (const kind of KINDS) rows.push(rowOf(`${what}: ${kind}, answers: ${answers}`, before[kind], during[kind]));
      await alone.remove();
      await served.remove();
    }
  }
  return rows;
}

type Under = {
  readonly answers: string;
  readonly asker: Container;
  readonly attack: Attack;
  readonly attacker: Container;
  readonly seconds: number;
};

async function under(
  engine: Engine,
  { answers, asker, attack, attacker, seconds }: Under,
): Promise<Record<Kind, readonly QueryEnd[]>> {
  await using dns11 = await startDns11(engine, { env: { DNS11_ANSWERS: answers } });
  if (answers === "kernel") await dns11.waitForKernel();
  const forMs = seconds * 1_000;
  const loops = Promise.all(
    KINDS.map(async (kind) => await queryLoop(asker, { ...QUERIES[kind], perSecond: PER_SECOND, forMs })),
  );
  await nft(attacker, BREAKS);
  await attack(attacker, performance.now() + forMs);
  const ends = await loops;
  return Object.fromEntries(KINDS.map((kind, index) => [kind, ends[index] ?? []])) as Record<Kind, readonly QueryEnd[]>;
}

async function write(attacker: Container, index: number, untilMs: number): Promise<void> {
  const elements = Array.from(
    { length: ELEMENTS },
    (_, each) => `10.${(each >> 16) & 255}.${(each >> 8) & 255}.${each & 255}`,
  );
  const table = `table ip t${index}`;
  const text = `add ${table}\ndelete ${table}\n${table} { set s { type ipv4_addr; elements = { ${elements.join(",")} }; }; }`;
  while (performance.now() < untilMs) await nft(attacker, text);
}

async function nft(attacker: Container, input: string): Promise<void> {
  const rights = ["--bounding-set=-all,+net_admin", "--no-new-privs", "nft", "-f", "-"];
  await attacker.enter("setpriv", rights, { input, timeoutMs: WRITER_TIMEOUT_MS });
}

function rowOf(what: string, alone: readonly QueryEnd[], served: readonly QueryEnd[]): Row {
  const [before, during] = [summaryOf(alone), summaryOf(served)];
  return {
    what,
    measured: `${during.text}; the same load in a container that is left alone: ${before.text}`,
    target: `0 lost, longest ${LONGER_MS} ms more`,
    isReached: during.lost === 0 && during.longest <= before.longest + LONGER_MS,
  };
}

function summaryOf(ends: readonly QueryEnd[]): {
  readonly lost: number;
  readonly longest: number;
  readonly text: string;
} {
  const answered = ends.filter(({ outcome }) => outcome === "NOERROR").map(({ tookMs }) => tookMs);
  const lost = ends.length - answered.length;
  const [p99, longest] = [quantile(answered, 0.99), Math.max(...answered)];
  return { lost, longest, text: `${lost} of ${ends.length} lost, p99 ${p99} ms, longest ${longest} ms` };
}
