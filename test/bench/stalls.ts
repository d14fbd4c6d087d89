// Stalls of the answering thread with 1,000 containers: while settings are reloaded, while 500 more start, while they stop,
// and while a container has 20,000 rules of its own that block queries to us. Real namespaces and rules, no engine. A turn of the event loop is what a query may have to wait; the processor
// time of one without garbage collection shows what we ask of it. A stay in a namespace is one synchronous call of ours. What a
// process does for the first time compiles its code as well, which takes a few milliseconds once: so each row has a rehearsal.
// A virtual machine counts time that the host took away as processor time, so one turn in a thousand looks long whatever it does:
// each row is the median of the longest of several rounds.

import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";

import type { RunSettings } from "../../src/config/settings.ts";
import { warmThreadPool } from "../../src/container/namespace/namespace-runner.ts";
import { preallocateDescriptors } from "../../src/kernel/descriptors.ts";
import type { EngineSide } from "../../src/run/engine/engine-side.ts";
import { startEngineSide } from "../support/program/engine-side.ts";
import { run } from "../support/program/command.ts";
import { inNetns } from "../support/rig/netns.ts";
import { NETWORK, factOf, idOf } from "./crowded-network.ts";
import type { Row } from "./figures.ts";
import { makeNetnses, removeNetnses } from "./namespaces.ts";
import { type During, NamespaceStays, ROUNDS, Rounds, SETTLE_MS } from "./stays.ts";

const ATTACHED = 1_000;
const STARTS = 500;
const RULES = 20_000;
const DOCKER_RULES =
  "table ip docker { chain o { type nat hook output priority -100; ip daddr 127.0.0.11 udp dport 53 dnat to 127.0.0.11:40053; }; }";

export async function benchStalls(): Promise<Row[]> {
  const paths = makeNetnses(ATTACHED + STARTS + 1);
  const stays = new NamespaceStays();
  try {
    preallocateDescriptors();
    await warmThreadPool();
    const { way, attached, settings, close } = startEngineSide({ runner: stays.runner });
    way.directory.putNetwork(NETWORK);
    for (const [index, path] of paths.slice(0, ATTACHED).entries()) way.roster.put(factOf(index, path));
    await attached.until(ATTACHED);
    const rounds = new Rounds(stays);
    const during: During = async (what, round) => await rounds.during(what, round);
    await measureReloads(way, settings, during);
    const perRound = STARTS / ROUNDS;
    const of = <T>(all: readonly T[], index: number): readonly T[] =>
      all.slice(index * perRound, (index + 1) * perRound);
    const facts = paths.map((path, index) => factOf(index, path)).slice(ATTACHED, ATTACHED + STARTS);
    await during(`${perRound} containers start`, async (index) => {
      await asInspected(of(facts, index), (fact) => way.roster.put(fact));
      await attached.until(ATTACHED + perRound * (index + 1));
    });
    await during(`${perRound} containers end`, async (index) => {
      await asInspected(of(facts, index), ({ id }) => way.roster.remove(id));
      await attached.until(ATTACHED + STARTS - perRound * (index + 1));
    });
    const hostile = paths.at(-1) ?? "";
    await loadRules(hostile);
    const serveHostile = async (): Promise<void> => {
      way.roster.put(factOf(ATTACHED + STARTS, hostile));
      await sleep(SETTLE_MS);
      way.roster.remove(idOf(ATTACHED + STARTS));
    };
    await serveHostile();
    await sleep(SETTLE_MS);
    await during(`a container with ${RULES} rules of its own`, serveHostile);
    await way.reconciler.stop();
    close();
    return rounds.rows;
  } finally {
    removeNetnses(paths);
  }
}

// Settings that change every name: a zone comes and goes, and addresses are sorted or not.
async function measureReloads(way: EngineSide, settings: RunSettings, during: During): Promise<void> {
  (await way.prepare(settings))();
  await way.refreshed();
  await during("reload", async (index) => {
    const isOther = index % 2 === 0;
    const names = { ...settings.names, order: isOther ? ("sorted" as const) : ("shuffle" as const) };
    const apply = await way.prepare({ ...settings, names, zones: isOther ? ["cluster.local"] : [] });
    apply();
    await way.refreshed();
  });
}

// The engine answers one inspect after the other.
async function asInspected<T>(all: readonly T[], apply: (one: T) => void): Promise<void> {
  for (const one of all) {
    await nextTurn();
    apply(one);
  }
}

// One of them drops every query, so that the search for the blocking rule runs. Docker's own rules are there as well: where
// nothing else tracks connections, our first rule has the kernel walk those of all namespaces.
async function loadRules(path: string): Promise<void> {
  const rules = Array.from(
    { length: RULES },
    (_, index) => `ip saddr 10.0.${(index >> 8) & 255}.${index & 255} counter`,
  );
  const chain = `type filter hook output priority 10; ${rules.join("; ")}; udp dport 1-65535 drop`;
  const [command = "", ...args] = inNetns(path, "nft", ["-f", "-"]);
  const { code, stderr } = await run(command, args, {
    input: `table ip many { chain c { ${chain}; }; }\n${DOCKER_RULES}`,
    timeoutMs: 60_000,
  });
  if (code !== 0) throw new Error(stderr);
}
