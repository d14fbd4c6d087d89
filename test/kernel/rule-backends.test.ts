/**
 * The rule backends in real namespaces: which rules each of them installs, that nothing is left and no foreign rule is
 * touched, what happens to rules of a dead instance, and how flushed rules are re-created.
 */
import assert from "node:assert/strict";
import { openSync } from "node:fs";
import { after, test } from "node:test";

import type { Attachment } from "../../src/container/attach/attachment.ts";
import { type Capture, DOCKER_REDIRECT, CONTAINER_CAPTURE } from "../../src/container/capture/capture.ts";
import { GuardCount } from "../../src/container/rules/drop-counters.ts";
import { RuleSet } from "../../src/container/rules/rule-set.ts";
import { type ListenAddress, servingPlan } from "../../src/container/rules/plan.ts";
import { installedRules } from "../../src/container/rules/installed-rules.ts";
import type { NetNamespace } from "../../src/kernel/net-namespace.ts";
import { RULE_BACKENDS, type RuleBackend } from "../../src/base/model/rule-backend.ts";
import { Attachments, answering } from "../support/program/attachments.ts";
import { Netns } from "../support/rig/netns.ts";
import { closeQuietly } from "../../src/kernel/libc.ts";

const ZONE = 4711;
/** Nothing listens there. */
const DEAD: ListenAddress = { address: "127.0.0.11", udpPort: 9, tcpPort: 9 };

const attaching = new Attachments();
const { runner, memory } = attaching;
after(() => attaching[Symbol.dispose]());

function attachmentIn(netns: Netns, backend: RuleBackend): Attachment {
  return attaching.in(netns.netnsPath, {
    ruleBackend: { backend },
    nextZone: () => ZONE,
    openEndpoint: answering,
  });
}

async function inside<T>(netns: Netns, work: (namespace: NetNamespace) => Promise<T>): Promise<T> {
  const fd = openSync(netns.netnsPath, "r");
  try {
    return await work(runner.namespaceOf(fd, memory));
  } finally {
    closeQuietly(fd);
  }
}

/** Installs rules and leaves them behind, like a killed process. */
async function leaveBehind(netns: Netns, backend: RuleBackend, capture: Capture = CONTAINER_CAPTURE): Promise<void> {
  const listening = capture.redirects.map(({ bind }) => ({ ...DEAD, address: bind }));
  const plans = servingPlan({ capture, listening, zone: 7, sparedPorts: [], passthroughMark: 1, trialMark: 2 });
  await inside(netns, async (namespace) => {
    const rules = new RuleSet(backend, namespace);
    await rules.install(plans, []);
    rules.close();
  });
}

async function rulesIn(netns: Netns): Promise<string> {
  const outputs = await Promise.all([
    netns.enter("nft", ["list", "ruleset"]),
    netns.enter("iptables-legacy-save"),
    netns.enter("ip6tables-legacy-save"),
  ]);
  return outputs.map(({ stdout }) => stdout.replace(/ # progname .*/, "").replaceAll(/^#.*\n/gm, "")).join("\n");
}

/** The rules and custom chains only, without the policies of tables that merely exist. */
function rulesAlone(text: string): string[] {
  return text.split("\n").filter((line) => /^-A|^\t\t[^t]|^:\S+ -/.test(line));
}

test("without an owner the table is the same, and is removed on close", async () => {
  await using netns = await Netns.create();
  const attachment = attachmentIn(netns, "nft");
  await attachment.open();
  await attachment.verify();
  assert.equal(attachment.state.kind, "attached");
  const [{ udpPort } = assert.fail()] = attachment.listening;
  const rules = await rulesIn(netns);
  assert.doesNotMatch(rules, /flags owner/);
  assert.match(rules, new RegExp(`udp dport 53 dnat to 127.0.0.11:${udpPort}\n`));
  await attachment.close();
  assert.deepEqual(rulesAlone(await rulesIn(netns)), []);
});

test("nft: draining removes the query rules and keeps the reply rules", async () => {
  await using netns = await Netns.create();
  const attachment = attachmentIn(netns, "nft");
  await attachment.open();
  const drained = attachment.drain();
  await attachment.idle();
  const rules = await rulesIn(netns);
  assert.doesNotMatch(rules, /dnat|dport 53 /);
  assert.match(rules, /snat to :53/);
  await drained;
  await attachment.close();
});

test("nft: rules of a dead instance are replaced with any backend, and nothing of them stays", async () => {
  for (const next of RULE_BACKENDS) {
    await using netns = await Netns.create();
    await leaveBehind(netns, "nft");
    assert.deepEqual(
      (await inside(netns, installedRules)).map(({ family, owner }) => [family, owner]),
      [["ip", "orphaned"]],
    );
    const attachment = attachmentIn(netns, next);
    await attachment.open();
    await attachment.verify();
    assert.equal(attachment.state.kind, "attached", `${next}: ${JSON.stringify(attachment.state)}`);
    assert.doesNotMatch(await rulesIn(netns), /zone set 7|sport 9 /);
    await attachment.close();
    assert.deepEqual(rulesAlone(await rulesIn(netns)), [], next);
  }
});

test("nft: a namespace with rules of a running instance is refused with any backend, and they stay as they are", async () => {
  await using netns = await Netns.create();
  const first = attachmentIn(netns, "nft");
  await first.open();
  const unchanged = await rulesIn(netns);
  for (const next of RULE_BACKENDS) {
    const second = attachmentIn(netns, next);
    await second.open();
    assert.equal(second.state.kind === "failed" && second.state.code, "OWNED_ELSEWHERE", next);
    await second.close();
    assert.equal(await rulesIn(netns), unchanged);
  }
  await first.verify();
  assert.equal(first.state.kind, "attached");
  await first.close();
});

test("nft: flushed rules are re-created by the next verification", async () => {
  await using netns = await Netns.create();
  const attachment = attachmentIn(netns, "nft");
  await attachment.open();
  await attachment.verify();
  const whole = rulesAlone(await rulesIn(netns));
  await netns.enter("nft", ["flush", "ruleset"]);
  await attachment.verify();
  assert.equal(attachment.state.kind, "attached");
  assert.deepEqual(rulesAlone(await rulesIn(netns)), whole);
  assert.equal(attachment.repairs, 1);
  await attachment.close();
});

test("nft: re-creating rules that still exist does not count as a repair", async () => {
  await using netns = await Netns.create();
  const attachment = attachmentIn(netns, "nft");
  await attachment.open();
  await attachment.verify();
  await netns.enter("iptables-legacy", ["-A", "OUTPUT", "-p", "udp", "-j", "DROP"]);
  await attachment.verify();
  assert.deepEqual([attachment.state.kind, attachment.repairs], ["failed", 0]);
  await attachment.close();
});

test("nft: rules for pods, of both families, are installed and removed", async () => {
  await using netns = await Netns.create();
  const capture: Capture = {
    redirects: [
      DOCKER_REDIRECT,
      { bind: "169.254.53.53", fromInside: ["10.1.2.3"], fromPods: ["10.1.2.3"], replySource: "10.1.2.3" },
      { bind: "fd00::53", fromInside: ["fd00::1"], fromPods: ["fd00::1"], replySource: "fd00::1" },
    ],
    bypassInterfaces: [1],
    guardsLoopback: true,
  };
  await leaveBehind(netns, "nft", capture);
  assert.match(await rulesIn(netns), /pod-.*guard.*fd00/s);
  // Another capture, without pods: the chains for pods are removed, too.
  const attachment = attachmentIn(netns, "nft");
  await attachment.open();
  assert.doesNotMatch(await rulesIn(netns), /pod-|guard|fd00/);
  await attachment.close();
  assert.deepEqual(rulesAlone(await rulesIn(netns)), []);
});

/** Rules as root in a container may write them: lines in a comment, chains with our names, and jumps to our chains. */
async function writeLies(netns: Netns): Promise<void> {
  const injected = "-A INPUT -s 10.9.9.9/32 -j DNS11-ZONE";
  for (const args of [
    ["-t", "raw", "-N", "DNS11-ZONE"],
    ["-t", "raw", "-N", "DNS11-A"],
    ["-t", "raw", "-A", "OUTPUT", "-m", "comment", "--comment", `x\n${injected}\ny`, "-p", "sctp", "-j", "RETURN"],
    ["-t", "raw", "-A", "OUTPUT", "-p", "sctp", "-j", "DNS11-ZONE"],
    ["-t", "raw", "-A", "OUTPUT", "-p", "sctp", "-j", "DNS11-A"],
    ["-t", "nat", "-N", "DNS11-GUARD"],
    ["-t", "mangle", "-A", "INPUT", "-m", "comment", "--comment", "not of DNS11-GUARD", "-p", "sctp", "-j", "DROP"],
  ]) {
    const { code, stderr } = await netns.enter("iptables-legacy", args);
    assert.equal(code, 0, stderr);
  }
}

for (const backend of RULE_BACKENDS) {
  test(`${backend}: whatever root in a container wrote into its own tables, it is served, and they stay as they were`, async () => {
    await using netns = await Netns.create();
    await writeLies(netns);
    const before = rulesAlone(await rulesIn(netns));
    const attachment = attachmentIn(netns, backend);
    await attachment.open();
    await attachment.verify();
    assert.equal(attachment.state.kind, "attached", JSON.stringify(attachment.state));
    await attachment.close();
    assert.deepEqual(rulesAlone(await rulesIn(netns)), before);
  });
}

test("packets dropped by the guards are counted in each family, and the last count is kept if it cannot be read", async () => {
  await using netns = await Netns.create();
  for (const [family, packets] of [
    ["ip", 1],
    ["ip6", 20],
  ] as const) {
    const rule = (protocol: string): string => `${protocol} dport 9 counter packets ${packets} bytes 9 drop`;
    const table = `table ${family} dns11 { chain guard { ${rule("udp")}; ${rule("tcp")}; }; chain other { ${rule("udp")}; }; }`;
    const { code, stderr } = await netns.enter("nft", [table]);
    assert.equal(code, 0, stderr);
  }
  const guards = new GuardCount();
  const fd = openSync(netns.netnsPath, "r");
  const namespace = runner.namespaceOf(fd, memory);
  guards.read(namespace);
  assert.equal(guards.last, 42);
  closeQuietly(fd);
  guards.read(namespace);
  assert.equal(guards.last, 42);
});
