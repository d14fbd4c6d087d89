// Stalls of the answering thread with 1,000 containers: while 500 more start, while they stop, and while a container
// has 20,000 rules of its own that block queries to us. Real namespaces and rules, no engine. A turn of the event loop,
// garbage collection included, is what a query may have to wait; a stay in a namespace is one synchronous call of ours.

import { setTimeout as sleep } from "node:timers/promises";

import { NamespaceRunner, warmThreadPool } from "../../src/container/namespace/namespace-runner.ts";
import { preallocateDescriptors } from "../../src/kernel/descriptors.ts";
import { setNetworkNamespace } from "../../src/kernel/libc.ts";
import { startEngineSide } from "../support/program/engine-side.ts";
import { run } from "../support/program/command.ts";
import { inNetns } from "../support/rig/netns.ts";
import { factOf, idOf, untilAttached } from "./crowded-network.ts";
import { type Row } from "./figures.ts";
import { makeNetnses, removeNetnses } from "./namespaces.ts";
import { ownMs } from "./own-time.ts";

const ATTACHED = 1_000;
const STARTS = 500;
const RULES = 20_000;
/** Limit of a synchronous call in a namespace. */
const STAY_MS_MAX = 2;
/** Long enough for delayed closes and the next check of failed verifications. */
const SETTLE_MS = 3_000;

export async function benchStalls(): Promise<Row[]> {
  const paths = await makeNetnses(ATTACHED + STARTS + 1);
  const stays = new NamespaceStays();
  try {
    preallocateDescriptors();
    await warmThreadPool();
    const { way, close } = startEngineSide(stays.runner);
    for (const [index, path] of paths.slice(0, ATTACHED).entries()) way.roster.put(factOf(index, path));
    await untilAttached(way, ATTACHED);
    const rows: Row[] = [];
    const during = async (what: string, work: () => Promise<void>): Promise<void> => {
      stays.longestMs = 0;
      const turns = new LoopTurns();
      await work();
      await sleep(SETTLE_MS);
      const longest = turns.end();
      rows.push(
        { what: `${what}: longest turn of the event loop`, measured: `${longest.toFixed(1)} ms` },
        {
          what: `${what}: longest stay in a namespace`,
          measured: `${stays.longestMs.toFixed(2)} ms`,
          target: `<= ${STAY_MS_MAX} ms`,
          isReached: stays.longestMs <= STAY_MS_MAX,
        },
      );
    };
    await during(`${STARTS} containers start`, async () => {
      for (const [index, path] of paths.entries()) {
        if (index >= ATTACHED && index < ATTACHED + STARTS) way.roster.put(factOf(index, path));
      }
      await untilAttached(way, ATTACHED + STARTS);
    });
    await during(`${STARTS} containers end`, async () => {
      for (let index = ATTACHED; index < ATTACHED + STARTS; index++) way.roster.remove(idOf(index));
      await untilAttached(way, ATTACHED);
    });
    const hostile = paths.at(-1) ?? "";
    await loadRules(hostile);
    await during(`a container with ${RULES} rules of its own`, async () => {
      way.roster.put(factOf(ATTACHED + STARTS, hostile));
      await sleep(SETTLE_MS);
      way.roster.remove(idOf(ATTACHED + STARTS));
    });
    await way.reconciler.stop();
    close();
    return rows;
  } finally {
    removeNetnses(paths);
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

// Longest turn of the event loop.
class LoopTurns {
  #longestMs = 0;
  #lastMs = ownMs();
  #isOver = false;

  constructor() {
    const measure = (): void => {
      const now = ownMs();
      this.#longestMs = Math.max(this.#longestMs, now - this.#lastMs);
      this.#lastMs = now;
      if (!this.#isOver) setImmediate(measure);
    };
    setImmediate(measure);
  }

  end(): number {
    this.#isOver = true;
    return this.#longestMs;
  }
}
