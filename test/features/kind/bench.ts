// Stalls of the answering thread while the networks of a KIND node with 20,000 rules change, without an engine: a namespace with as many
// links and rules as a large cluster has, and the mode that serves it. What is measured of a round is in test/bench/stalls.ts.

import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";

import { type NamespaceRunner, warmThreadPool } from "../../../src/container/namespace/namespace-runner.ts";
import { KIND_DEFAULTS, KIND_MODES, type KindMode } from "../../../src/features/kind/feature.ts";
import type { NodeMode } from "../../../src/features/kind/node-mode.ts";
import { preallocateDescriptors } from "../../../src/kernel/descriptors.ts";
import type { FeaturePart } from "../../bench/feature-parts.ts";
import type { Row } from "../../bench/figures.ts";
import { makeNetnses, removeNetnses } from "../../bench/namespaces.ts";
import { NamespaceStays, Rounds } from "../../bench/stays.ts";
import { run } from "../../support/program/command.ts";
import { inNetns } from "../../support/rig/netns.ts";
import { NODE_ADDRESS, nodeModeIn } from "./mode-in-folder.ts";

const RULES = 20_000;

export const parts: readonly FeaturePart[] = [["nodes", "Stalls of the answering thread by KIND nodes", benchNodes]];

async function benchNodes(): Promise<Row[]> {
  const paths = makeNetnses(1);
  const stays = new NamespaceStays();
  try {
    preallocateDescriptors();
    await warmThreadPool();
    const [node = ""] = paths;
    await fillNode(node, RULES);
    const rounds = new Rounds(stays);
    for (const mode of KIND_MODES) {
      const change = async (): Promise<void> => await changeNetworks(node, stays.runner, mode);
      await change();
      await rounds.during(`networks of a node change, mode ${mode}`, change);
    }
    return rounds.rows;
  } finally {
    removeNetnses(paths);
  }
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

const PODS = 110;

// As Kubernetes' own proxy writes them: a redirect of a port for each service.
async function fillNode(path: string, ruleCount: number): Promise<void> {
  const links = Array.from(
    { length: PODS },
    (_, index) => `link add v${index} type veth peer name p${index}\nlink set v${index} up\n`,
  );
  const address = `address add ${NODE_ADDRESS}/24 dev v0\n`;
  await inside(path, "ip", ["-batch", "-"], [...links, address].join(""));
  const rules = Array.from(
    { length: ruleCount },
    (_, index) => `ip daddr 10.96.${(index >> 8) & 255}.${index & 255} tcp dport ${1_000 + (index % 60_000)} counter`,
  );
  await inside(path, "nft", ["-f", "-"], `table ip services { chain c { ${rules.join("; ")}; }; }`);
}

async function inside(path: string, program: string, words: readonly string[], input: string): Promise<void> {
  const [command = "", ...args] = inNetns(path, program, words);
  const { code, stderr } = await run(command, args, { input, timeoutMs: 60_000 });
  if (code !== 0) throw new Error(stderr);
}

// Its resolv.conf is written, too.
function largeNodeIn(folder: string, mode: KindMode, runner: NamespaceRunner): NodeMode {
  writeFileSync(join(folder, "resolv.conf"), "nameserver 127.0.0.11\noptions ndots:0\n");
  // The node's own address: only there can a program be in the way.
  return nodeModeIn({ folder, policy: { ...KIND_DEFAULTS, address: "node", mode }, runner });
}

function temporaryFolder(): string {
  return mkdtempSync(join(tmpdir(), "d11-bench-node-"));
}
