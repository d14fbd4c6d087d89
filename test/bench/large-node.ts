// A KIND node of a large cluster without an engine: a namespace with as many links and rules, and the mode that serves it.

import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { KIND_DEFAULTS, type KindMode } from "../../src/base/model/kind-policy.ts";
import type { NodeMode } from "../../src/container/kind/node-mode.ts";
import type { NamespaceRunner } from "../../src/container/namespace/namespace-runner.ts";
import { NODE_ADDRESS, nodeModeIn } from "../support/kind/node-mode.ts";
import { run } from "../support/program/command.ts";
import { inNetns } from "../support/rig/netns.ts";

const PODS = 110;

// As Kubernetes' own proxy writes them: a redirect of a port for each service.
export async function fillNode(path: string, ruleCount: number): Promise<void> {
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
export function largeNodeIn(folder: string, mode: KindMode, runner: NamespaceRunner): NodeMode {
  writeFileSync(join(folder, "resolv.conf"), "nameserver 127.0.0.11\noptions ndots:0\n");
  // The node's own address: only there can a program be in the way.
  return nodeModeIn({ folder, policy: { ...KIND_DEFAULTS, address: "node", mode }, runner });
}

export function temporaryFolder(): string {
  return mkdtempSync(join(tmpdir(), "d11-bench-node-"));
}
