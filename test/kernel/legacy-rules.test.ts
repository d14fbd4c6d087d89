// Proves that rules of iptables-legacy are read as its own program prints them, without creating an unused table, and that
// Docker's rules are found in each of their three forms.

import assert from "node:assert/strict";
import { closeSync, openSync } from "node:fs";
import { after, before, test } from "node:test";

import { dockerRules, legacyRuleCulprits } from "../../src/doctor/checks/container-check.ts";
import { LIMITS } from "../../src/base/limits.ts";
import { findCulprits } from "../../src/container/rules/culprit.ts";
import type { NetNamespace } from "../../src/kernel/net-namespace.ts";
import { NamespaceRunner } from "../../src/container/namespace/namespace-runner.ts";
import { legacyRules } from "../../src/kernel/legacy-rules.ts";
import { type Xtables, readXtables } from "../../src/kernel/xtables.ts";
import { NetlinkMemory } from "../../src/kernel/netlink-socket.ts";
import { writeDockerRules } from "../support/engine/docker-rules.ts";
import { Netns } from "../support/rig/netns.ts";

const runner = new NamespaceRunner();
const memory = new NetlinkMemory();

after(() => runner.close());

async function inNamespace<T>(
  prepare: (netns: Netns) => Promise<void>,
  work: (namespace: NetNamespace) => Promise<T>,
): Promise<T> {
  await using netns = await Netns.create();
  await prepare(netns);
  const fd = openSync(netns.netnsPath, "r");
  try {
    return await work(runner.namespaceOf(fd, memory));
  } finally {
    closeSync(fd);
  }
}

async function inside<T>(
  prepare: (netns: Netns) => Promise<void>,
  work: (tables: Xtables | undefined) => T,
): Promise<T> {
  return await inNamespace(prepare, async ({ within }) => {
    const tables = await readXtables(within);
    return within(() => work(tables));
  });
}

async function iptables(netns: Netns, ...rules: string[]): Promise<void> {
  for (const rule of rules) {
    const { code, stderr } = await netns.enter("iptables-legacy", rule.split(" "));
    assert.equal(code, 0, stderr);
  }
}

before(async () => assert.deepEqual(await runner.withScratch(memory, tableNames), []));

async function tableNames({ within }: NetNamespace): Promise<string[]> {
  return [...((await readXtables(within))?.keys() ?? assert.fail())];
}

test("Docker's rules are found in each form, and none are found where there are none", async () => {
  for (const [shape, expected] of [
    ["iptables-nft", "iptables (nft)"],
    ["iptables-legacy", "iptables-legacy"],
    ["nftables", "nftables"],
  ] as const) {
    const write = async ({ netnsPath }: Netns): Promise<void> =>
      await writeDockerRules(netnsPath, shape, { udp: 4001, tcp: 4002 });
    const check = (tables: Xtables | undefined): unknown => [dockerRules(memory, tables), legacyRuleCulprits(tables)];
    assert.deepEqual(await inside(write, check), [[expected], []], shape);
  }
  const seen = await runner.withScratch(memory, async (namespace) => {
    const tables = await readXtables(namespace.within);
    const found = namespace.within(() => dockerRules(memory, tables));
    return [found, legacyRules(tables, "nat"), await tableNames(namespace)];
  });
  assert.deepEqual(seen, [[], [], []], "reading created no table");
});

test("chains, targets, ports and policies are those that iptables prints", async () => {
  const rules = await inside(
    async (netns) =>
      await iptables(
        netns,
        "-N mine",
        "-A mine -p tcp --dport 20:80 -j REJECT",
        "-A OUTPUT -p udp --dport 53 -j DROP",
        "-A OUTPUT -j mine",
        "-P INPUT DROP",
      ),
    (tables) => legacyRules(tables, "filter"),
  );
  const shown = rules?.map((rule) => [
    rule.chain,
    rule.target,
    rule.protocol,
    rule.portFrom,
    rule.portTo,
    rule.isPolicy,
  ]);
  assert.deepEqual(shown, [
    ["INPUT", "DROP", undefined, 0, 65_535, true],
    ["FORWARD", "", undefined, 0, 65_535, true],
    ["OUTPUT", "DROP", "udp", 53, 53, false],
    ["OUTPUT", "", undefined, 0, 65_535, false],
    ["OUTPUT", "", undefined, 0, 65_535, true],
    ["mine", "REJECT", "tcp", 20, 80, false],
    ["mine", "", undefined, 0, 65_535, false],
  ]);
});

test("rules that redirect port 53 or drop incoming packets are found; other ports and forwarded packets are not", async () => {
  const culprits = await inside(
    async (netns) =>
      await iptables(
        netns,
        "-t nat -A OUTPUT -p udp --dport 53 -j DNAT --to 192.0.2.1:53",
        "-t nat -A PREROUTING -p tcp --dport 5353 -j REDIRECT --to-ports 53",
        "-A FORWARD -j DROP",
        "-A OUTPUT -p tcp --dport 443 -j DROP",
        "-P INPUT DROP",
      ),
    legacyRuleCulprits,
  );
  assert.deepEqual(culprits, [
    `chain "OUTPUT" of iptables-legacy table nat redirects port 53`,
    `chain "INPUT" of iptables-legacy table filter drops packets`,
  ]);
});

test("a table is read up to a maximum size, and a larger one is reported", async () => {
  const rules = Array.from({ length: LIMITS.xtableBytes / 150 }, () => "-A mine -j RETURN").join("\n");
  const seen = await inNamespace(
    async (netns) => {
      const input = `*nat\n:mine - [0:0]\n${rules}\nCOMMIT\n`;
      const { code, stderr } = await netns.enter("iptables-legacy-restore", [], { input });
      assert.equal(code, 0, stderr);
    },
    async (namespace) => {
      const tables = await readXtables(namespace.within);
      return [
        namespace.within(() => dockerRules(memory, tables)),
        legacyRuleCulprits(tables),
        await findCulprits(namespace),
      ];
    },
  );
  const expected = "table nat of iptables-legacy is too large, or changes too often, to be read";
  assert.deepEqual(seen, [undefined, [], [expected]]);
});
