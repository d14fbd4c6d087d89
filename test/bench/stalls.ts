// Stalls of the answering thread with 1,000 containers: while settings are reloaded, while 500 more start, while they stop,
// while a container has 20,000 rules of its own that block queries to us, and while the networks of a KIND node with as many
// rules change. Real namespaces and rules, no engine. A turn of the event loop is what a query may have to wait; the processor
// time of one without garbage collection shows what we ask of it. A stay in a namespace is one synchronous call of ours. What a
// process does for the first time compiles its code as well, which takes a few milliseconds once: so each row has a rehearsal.

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
import { NETWORK, factOf, idOf, untilAttached } from "./crowded-network.ts";
import { type Row, median } from "./figures.ts";
import { fillNode, largeNodeIn, temporaryFolder } from "./large-node.ts";
import { makeNetnses, removeNetnses } from "./namespaces.ts";
import { LoopTurns } from "./loop-turns.ts";
import { ownMs } from "./own-time.ts";

const ATTACHED = 1_000;
const STARTS = 500;
const RULES = 20_000;
/** Limit of a synchronous call. */
const CALL_MS_MAX = 2;
const RELOADS = 5;
const RELOAD_PAUSE_MS = 200;
const NODE_CHANGES = 5;
/** Long enough for delayed closes and the next check of failed verifications. */
const SETTLE_MS = 3_000;

export async function benchStalls(): Promise<Row[]> {
  const paths = await makeNetnses(ATTACHED + STARTS + 1);
  const stays = new NamespaceStays();
  try {
    preallocateDescriptors();
    await warmThreadPool();
    const { way, settings, close } = startEngineSide(stays.runner);
    way.directory.putNetwork(NETWORK);
    for (const [index, path] of paths.slice(0, ATTACHED).entries()) way.roster.put(factOf(index, path));
    await untilAttached(way, ATTACHED);
    const rows: Row[] = [];
    const during = async (what: string, work: () => Promise<void>): Promise<void> => {
      stays.longestMs = 0;
      const turns = new LoopTurns();
      await work();
      await sleep(SETTLE_MS);
      const { longestMs, withoutCollectionMs } = await turns.end();
      rows.push(
        { what: `${what}: longest turn of the event loop`, measured: `${longestMs.toFixed(1)} ms` },
        limited(`${what}: processor time without garbage collection`, withoutCollectionMs),
        limited(`${what}: longest stay in a namespace`, stays.longestMs),
      );
    };
    rows.push(...(await reloads(way, settings)));
    await during(`${STARTS} containers start`, async () => {
      const facts = paths.map((path, index) => factOf(index, path)).slice(ATTACHED, ATTACHED + STARTS);
      await asInspected(facts, (fact) => way.roster.put(fact));
      await untilAttached(way, ATTACHED + STARTS);
    });
    await during(`${STARTS} containers end`, async () => {
      const ids = paths.map((_, index) => idOf(index)).slice(ATTACHED, ATTACHED + STARTS);
      await asInspected(ids, (id) => way.roster.remove(id));
      await untilAttached(way, ATTACHED);
    });
    const hostile = paths.at(-1) ?? "";
    await loadRules(hostile);
    const serveHostile = async (): Promise<void> => {
      way.roster.put(factOf(ATTACHED + STARTS, hostile));
      await sleep(SETTLE_MS);
      way.roster.remove(idOf(ATTACHED + STARTS));
    };
    await serveHostile();
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

// Settings that change every name: a zone comes and goes, and addresses are sorted or not.
async function reloads(way: EngineSide, settings: RunSettings): Promise<Row[]> {
  (await way.prepare(settings))();
  await way.refreshed();
  const turns = new LoopTurns();
  const times: number[] = [];
  for (let round = 0; round < RELOADS; round++) {
    const isOther = round % 2 === 0;
    const names = { ...settings.names, order: isOther ? ("sorted" as const) : ("shuffle" as const) };
    const startMs = performance.now();
    const apply = await way.prepare({ ...settings, names, zones: isOther ? ["cluster.local"] : [] });
    apply();
    await way.refreshed();
    times.push(performance.now() - startMs);
    await sleep(RELOAD_PAUSE_MS);
  }
  const { longestMs, withoutCollectionMs } = await turns.end();
  return [
    { what: "reload: until every container has its new names", measured: `${median(times).toFixed(0)} ms` },
    { what: "reload: longest turn of the event loop", measured: `${longestMs.toFixed(1)} ms` },
    limited("reload: processor time without garbage collection", withoutCollectionMs),
  ];
}

async function changeNetworks(path: string, runner: NamespaceRunner, mode: KindMode): Promise<void> {
  const folder = temporaryFolder();
  const fd = openSync(path, "r");
  try {
    const node = largeNodeIn(folder, mode, runner);
    for (let change = 0; change < NODE_CHANGES; change++) {
      runner.within(fd, () => node.capture());
      await node.conflicts.read();
      await node.letPodsIn((work) => runner.within(fd, work));
    }
    node.withdraw((work) => runner.within(fd, work));
    runner.within(fd, () => node.undo());
  } finally {
    closeSync(fd);
    rmSync(folder, { recursive: true });
  }
}

function limited(what: string, ms: number): Row {
  return { what, measured: `${ms.toFixed(2)} ms`, target: `<= ${CALL_MS_MAX} ms`, isReached: ms <= CALL_MS_MAX };
}

// The engine answers one inspect after the other.
async function asInspected<T>(all: readonly T[], apply: (one: T) => void): Promise<void> {
  for (const one of all) {
    await nextTurn();
    apply(one);
  }
}

// One of them drops every query, so that the search for the blocking rule runs.
async function loadRules(path: string): Promise<void> {
  const rules = Array.from(
    { length: RULES },
    (_, index) => `ip saddr 10.0.${(index >> 8) & 255}.${index & 255} counter`,
  );
  const chain = `type filter hook output priority 10; ${rules.join("; ")}; udp dport 1-65535 drop`;
  const [command = "", ...args] = inNetns(path, "nft", ["-f", "-"]);
  const { code, stderr } = await run(command, args, {
    input: `table ip many { chain c { ${chain}; }; }`,
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
