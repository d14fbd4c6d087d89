// Stalls of the answering thread with 1,000 containers: while settings are reloaded, while 500 more start, while they stop,
// while a container has 20,000 rules of its own that block queries to us, and while the networks of a KIND node with as many
// rules change. Real namespaces and rules, no engine. A turn of the event loop is what a query may have to wait; the processor
// time of one without garbage collection shows what we ask of it. A stay in a namespace is one synchronous call of ours. What a
// process does for the first time compiles its code as well, which takes a few milliseconds once: so each row has a rehearsal.
// A virtual machine counts time that the host took away as processor time, so one turn in a thousand looks long whatever it does:
// each row is the median of the longest of several rounds.

import { closeSync, openSync, rmSync } from "node:fs";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";

import { KIND_MODES, type KindMode } from "../../src/base/model/kind-policy.ts";
import type { RunSettings } from "../../src/config/settings.ts";
import { NamespaceRunner, warmThreadPool } from "../../src/container/namespace/namespace-runner.ts";
import { preallocateDescriptors } from "../../src/kernel/descriptors.ts";
import type { EngineSide } from "../../src/run/engine/engine-side.ts";
import { setNetworkNamespace } from "../../src/kernel/libc.ts";
import { startEngineSide } from "../support/program/engine-side.ts";
import { run } from "../support/program/command.ts";
import { inNetns } from "../support/rig/netns.ts";
import { NETWORK, factOf, idOf } from "./crowded-network.ts";
import { type Row, spreadOf } from "./figures.ts";
import { fillNode, largeNodeIn, temporaryFolder } from "./large-node.ts";
import { makeNetnses, removeNetnses } from "./namespaces.ts";
import { LoopTurns, type LongestTurns } from "./loop-turns.ts";
import { ownMs } from "./own-time.ts";
import { limited, turnRows } from "./turn-rows.ts";

const ATTACHED = 1_000;
const STARTS = 500;
const RULES = 20_000;
const DOCKER_RULES =
  "table ip docker { chain o { type nat hook output priority -100; ip daddr 127.0.0.11 udp dport 53 dnat to 127.0.0.11:40053; }; }";
const ROUNDS = 5;
/** Long enough for delayed closes and the next check of failed verifications. */
const SETTLE_MS = 1_500;

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
    const rows: Row[] = [];
    const during = async (what: string, round: (index: number) => Promise<void>): Promise<void> => {
      const measured: (LongestTurns & { readonly stayMs: number })[] = [];
      for (let index = 0; index < ROUNDS; index++) {
        stays.longestMs = 0;
        const turns = new LoopTurns();
        await round(index);
        await sleep(SETTLE_MS);
        measured.push({ ...(await turns.end()), stayMs: stays.longestMs });
      }
      rows.push(...turnRows(what, measured));
      const stayed = spreadOf(measured.map(({ stayMs }) => stayMs));
      if (stayed.high > 0) rows.push(limited(`${what}: longest stay in a namespace`, stayed));
    };
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
    const node = paths[ATTACHED] ?? "";
    await fillNode(node, RULES);
    for (const mode of KIND_MODES) {
      const change = async (): Promise<void> => await changeNetworks(node, stays.runner, mode);
      await change();
      await during(`networks of a node change, mode ${mode}`, change);
    }
    await way.reconciler.stop();
    close();
    return rows;
  } finally {
    removeNetnses(paths);
  }
}

type During = (what: string, round: (index: number) => Promise<void>) => Promise<void>;

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

async function changeNetworks(path: string, runner: NamespaceRunner, mode: KindMode): Promise<void> {
  const folder = temporaryFolder();
  const fd = openSync(path, "r");
  try {
    const node = largeNodeIn(folder, mode, runner);
    // Its files are the bench's own work.
    await nextTurn();
    runner.within(fd, () => node.capture());
    await node.conflicts.read();
    await node.letPodsIn((work) => runner.within(fd, work));
    await nextTurn();
    runner.within(fd, () => node.capture());
    await nextTurn();
    const within = <T>(work: () => T): T => runner.within(fd, work);
    await node.withdraw(within);
    await node.undoInSlices(within);
    await nextTurn();
    within(() => node.undo());
    await nextTurn();
  } finally {
    closeSync(fd);
    rmSync(folder, { recursive: true });
  }
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

// Longest time for which this thread stayed in another namespace.
class NamespaceStays {
  longestMs = 0;
  readonly runner: NamespaceRunner;
  #enteredMs: number | undefined;

  constructor() {
    this.runner = new NamespaceRunner({
      enter: (fd) => {
        setNetworkNamespace(fd);
        if (this.#enteredMs === undefined) this.#enteredMs = ownMs();
        else {
          this.longestMs = Math.max(this.longestMs, ownMs() - this.#enteredMs);
          this.#enteredMs = undefined;
        }
      },
      abort: () => process.abort(),
    });
  }
}
