// A KIND node of a large cluster without an engine: a namespace with as many links and rules, and the mode that serves it.

import { mkdirSync, mkdtempSync, openSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { KIND_DEFAULTS, type KindMode } from "../../src/base/model/kind-policy.ts";
import { Journal } from "../../src/container/kind/journal.ts";
import { NodeMode } from "../../src/container/kind/node-mode.ts";
import { NodeResolvConf } from "../../src/container/kind/node-resolv-conf.ts";
import type { NamespaceRunner } from "../../src/container/namespace/namespace-runner.ts";
import { NetlinkMemory } from "../../src/kernel/netlink-socket.ts";
import { run } from "../support/program/command.ts";
import { inNetns } from "../support/rig/netns.ts";

const PODS = 110;
const OWN = "10.6.0.2";

// As Kubernetes' own proxy writes them: a redirect of a port for each service.
export async function fillNode(path: string, ruleCount: number): Promise<void> {
  const links = Array.from(
    { length: PODS },
    (_, index) => `link add v${index} type veth peer name p${index}\nlink set v${index} up\n`,
  );
  const address = `address add ${OWN}/24 dev v0\n`;
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

interface NodeParts {
  readonly folder: string;
  readonly mode: KindMode;
  readonly runner: NamespaceRunner;
}

export function nodeModeIn({ folder, mode, runner }: NodeParts): NodeMode {
  const path = join(folder, "resolv.conf");
  mkdirSync(join(folder, "nodes"), { recursive: true });
  writeFileSync(path, "nameserver 127.0.0.11\noptions ndots:0\n");
  const open = (flags: number): number => openSync(path, flags);
  const openOriginal = (): never => {
    throw new Error("no entrypoint was here");
  };
  const fact = {
    containerId: "abc",
    name: "node",
    startedAt: "now",
    sandboxKey: "",
    pid: process.pid,
    resolvConfPath: path,
    search: undefined,
    gateway: { ipv4: "10.6.0.1", ipv6: undefined },
    own: { ipv4: OWN, ipv6: undefined },
    addresses: [OWN],
    hostGateway: undefined,
  };
  return new NodeMode(
    fact,
    // The node's own address: only there can a program be in the way.
    { ...KIND_DEFAULTS, address: "node", mode },
    {
      runner,
      memory: new NetlinkMemory(),
      journal: new Journal(folder),
      resolvConf: new NodeResolvConf({
        path,
        openWritten: open,
        openRead: open,
        openOriginal,
        isContainerFile: () => true,
      }),
      onChange: () => undefined,
      onEvent: () => undefined,
    },
  );
}

export function temporaryFolder(): string {
  return mkdtempSync(join(tmpdir(), "d11-bench-node-"));
}
