/**
 * The rule backends in real namespaces: which rules each of them installs, that nothing is left and no foreign rule is
 * touched, what happens to rules of a dead instance, and how flushed rules are re-created.
 */
import assert from "node:assert/strict";
import { openSync, readdirSync, readlinkSync } from "node:fs";
import { after, test } from "node:test";

import type { Attachment } from "../../src/container/attach/attachment.ts";
import { type Capture, DOCKER_REDIRECT, CONTAINER_CAPTURE } from "../../src/container/capture/capture.ts";
import { removeUnownedRules } from "../../src/container/rules/permanent-rules.ts";
import { openRuleSet } from "../../src/container/rules/open-rule-set.ts";
import { type ListenAddress, servingPlan } from "../../src/container/rules/plan.ts";
import { installedRules } from "../../src/container/rules/installed-rules.ts";
import type { NetNamespace } from "../../src/kernel/net-namespace.ts";
import { Fault } from "../../src/base/lib/fault.ts";
import { RULE_BACKENDS, type RuleBackendChoice, type RuleBackend } from "../../src/base/model/rule-backend.ts";
import { Attachments, answering } from "../support/program/attachments.ts";
import { writeDockerRules } from "../support/engine/docker-rules.ts";
import { Netns } from "../support/rig/netns.ts";
import { closeQuietly } from "../../src/kernel/libc.ts";

const ZONE = 4711;
const LOWER = ["nft", "iptables-legacy"] as const;
/** Nothing listens there. */
const DEAD: ListenAddress = { address: "127.0.0.11", udpPort: 9, tcpPort: 9 };

const attaching = new Attachments();
const { runner, memory } = attaching;
after(() => attaching[Symbol.dispose]());

function attachmentIn(netns: Netns, backend: RuleBackend, hasZones = true): Attachment {
  return attaching.in(netns.netnsPath, {
    ruleBackend: { backend, hasZones },
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
async function leaveBehind(
  netns: Netns,
  choice: RuleBackendChoice,
  capture: Capture = CONTAINER_CAPTURE,
): Promise<void> {
  const listening = capture.redirects.map(({ bind }) => ({ ...DEAD, address: bind }));
  const plans = servingPlan({ capture, listening, zone: 7, sparedPorts: [], passthroughMark: 1, trialMark: 2 });
  await inside(netns, async (namespace) => {
    const rules = openRuleSet(choice, namespace);
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

test("iptables-legacy installs exactly these rules, in front, and touches no foreign rule", async () => {
  await using netns = await Netns.create();
  await writeDockerRules(netns.netnsPath, "iptables-legacy", { udp: 9, tcp: 9 });
  await netns.enter("iptables-legacy", ["-t", "raw", "-A", "OUTPUT", "-p", "udp", "--dport", "53", "-j", "NOTRACK"]);
  const before = rulesAlone(await rulesIn(netns));
  const attachment = attachmentIn(netns, "iptables-legacy");
  await attachment.open();
  await attachment.verify();
  assert.deepEqual(attachment.state.kind, "attached", JSON.stringify(attachment.state));
  const [{ udpPort: udp, tcpPort: tcp } = assert.fail()] = attachment.listening;
  const rules = rulesAlone(await rulesIn(netns));
  const ours = rules.filter((line) => line.includes("DNS11-"));
  assert.deepEqual(
    ours.toSorted(),
    [
      "-A DNS11-QUERY -d 127.0.0.11/32 -p tcp -m tcp --dport 53 -j DNAT --to-destination 127.0.0.11:" + tcp,
      "-A DNS11-QUERY -d 127.0.0.11/32 -p udp -m udp --dport 53 -j DNAT --to-destination 127.0.0.11:" + udp,
      "-A DNS11-QUERY -m mark --mark 0x646e7331 -j RETURN",
      `-A DNS11-REPLY -s 127.0.0.11/32 -p tcp -m tcp --sport ${tcp} -j SNAT --to-source :53`,
      `-A DNS11-REPLY -s 127.0.0.11/32 -p udp -m udp --sport ${udp} -j SNAT --to-source :53`,
      `-A DNS11-ZONE -d 127.0.0.11/32 -p tcp -m tcp --dport 53 -j CT --zone ${ZONE}`,
      `-A DNS11-ZONE -d 127.0.0.11/32 -p tcp -m tcp --dport ${tcp} -j CT --zone ${ZONE}`,
      `-A DNS11-ZONE -d 127.0.0.11/32 -p udp -m udp --dport 53 -j CT --zone ${ZONE}`,
      `-A DNS11-ZONE -d 127.0.0.11/32 -p udp -m udp --dport ${udp} -j CT --zone ${ZONE}`,
      "-A DNS11-ZONE -m mark --mark 0x646e7331 -j RETURN",
      `-A DNS11-ZONE -s 127.0.0.11/32 -p tcp -m tcp --sport ${tcp} -j CT --zone ${ZONE}`,
      `-A DNS11-ZONE -s 127.0.0.11/32 -p udp -m udp --sport ${udp} -j CT --zone ${ZONE}`,
      "-A OUTPUT -j DNS11-QUERY",
      "-A OUTPUT -j DNS11-ZONE",
      "-A POSTROUTING -j DNS11-REPLY",
      ":DNS11-QUERY - [0:0]",
      ":DNS11-REPLY - [0:0]",
      ":DNS11-ZONE - [0:0]",
    ].toSorted(),
  );
  const heads = rules.filter((line) => line.startsWith("-A OUTPUT"));
  assert.equal(
    heads.indexOf("-A OUTPUT -j DNS11-QUERY") < heads.indexOf("-A OUTPUT -d 127.0.0.11/32 -j DOCKER_OUTPUT"),
    true,
  );
  assert.deepEqual(rules.filter((line) => !line.includes("DNS11-")).toSorted(), before.toSorted());
  await attachment.close();
  assert.deepEqual(rulesAlone(await rulesIn(netns)), before);
});

test("without conntrack zones in the kernel, iptables-legacy works without them", async () => {
  await using netns = await Netns.create();
  const attachment = attachmentIn(netns, "iptables-legacy", false);
  await attachment.open();
  await attachment.verify();
  assert.equal(attachment.state.kind, "attached");
  assert.doesNotMatch(await rulesIn(netns), /CT --zone|\*raw/);
  await attachment.close();
});

test("while iptables runs in a namespace, no thread of ours is there", async () => {
  await using netns = await Netns.create();
  const attachment = attachmentIn(netns, "iptables-legacy");
  await attachment.open();
  const threads = readdirSync("/proc/self/task").map((id) => readlinkSync(`/proc/self/task/${id}/ns/net`));
  assert.deepEqual([...new Set(threads)], [readlinkSync("/proc/self/ns/net")]);
  await attachment.close();
});

for (const backend of LOWER) {
  test(`${backend}: draining removes the query rules and keeps the reply rules`, async () => {
    await using netns = await Netns.create();
    const attachment = attachmentIn(netns, backend);
    await attachment.open();
    const drained = attachment.drain();
    await attachment.idle();
    const rules = await rulesIn(netns);
    assert.doesNotMatch(rules, /dnat|DNAT|dport 53 /);
    assert.match(rules, /snat to :53|--to-source :53/);
    await drained;
    await attachment.close();
  });

  test(`${backend}: rules of a dead instance are replaced with any backend, and nothing of them stays`, async () => {
    for (const next of RULE_BACKENDS) {
      await using netns = await Netns.create();
      await leaveBehind(netns, { backend, hasZones: true });
      assert.deepEqual(
        (await inside(netns, installedRules)).map(({ kind, family, owner }) => [kind, family, owner]),
        [[backend === "nft" ? "table" : "chains", "ip", "orphaned"]],
      );
      const attachment = attachmentIn(netns, next);
      await attachment.open();
      await attachment.verify();
      assert.equal(attachment.state.kind, "attached", `${next}: ${JSON.stringify(attachment.state)}`);
      assert.doesNotMatch(await rulesIn(netns), /zone set 7|--zone 7|sport 9 /);
      await attachment.close();
      assert.deepEqual(rulesAlone(await rulesIn(netns)), [], next);
    }
  });

  test(`${backend}: a namespace with rules of a running instance is refused with any backend, and they stay as they are`, async () => {
    await using netns = await Netns.create();
    const first = attachmentIn(netns, backend);
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

  test(`${backend}: flushed rules are re-created by the next verification`, async () => {
    await using netns = await Netns.create();
    const attachment = attachmentIn(netns, backend);
    await attachment.open();
    await attachment.verify();
    const whole = rulesAlone(await rulesIn(netns));
    for (const flush of [
      ["nft", "flush", "ruleset"],
      ["iptables-legacy", "-t", "nat", "-F"],
      ["iptables-legacy", "-t", "nat", "-D", "OUTPUT", "-j", "DNS11-QUERY"],
    ]) {
      const [command = "", ...args] = flush;
      await netns.enter(command, args);
      await attachment.verify();
      assert.equal(attachment.state.kind, "attached", flush.join(" "));
      assert.deepEqual(rulesAlone(await rulesIn(netns)), whole, flush.join(" "));
    }
    assert.equal(attachment.repairs, backend === "nft" ? 1 : 2);
    await attachment.close();
  });

  test(`${backend}: re-creating rules that still exist does not count as a repair`, async () => {
    await using netns = await Netns.create();
    const attachment = attachmentIn(netns, backend);
    await attachment.open();
    await attachment.verify();
    await netns.enter("iptables-legacy", ["-A", "OUTPUT", "-p", "udp", "-j", "DROP"]);
    await attachment.verify();
    assert.deepEqual([attachment.state.kind, attachment.repairs], ["failed", 0]);
    await attachment.close();
  });

  test(`${backend}: rules for pods, of both families, are installed and removed`, async () => {
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
    await leaveBehind(netns, { backend, hasZones: true }, capture);
    const rules = await rulesIn(netns);
    if (backend === "iptables-legacy") {
      for (const line of [
        "-A PREROUTING -j DNS11-POD-ZONE",
        "-A PREROUTING -j DNS11-POD-QUERY",
        "-A INPUT -j DNS11-GUARD",
        "-A DNS11-POD-QUERY -i lo -j RETURN",
        "-A DNS11-GUARD -d 127.0.0.0/8 ! -i lo -m conntrack ! --ctstate DNAT -j DROP",
        "-A DNS11-POD-QUERY -d 10.1.2.3/32 -p udp -m udp --dport 53 -j DNAT --to-destination 169.254.53.53:9",
        "-A DNS11-REPLY -s 169.254.53.53/32 -p udp -m udp --sport 9 -j SNAT --to-source 10.1.2.3:53",
        "-A DNS11-POD-QUERY -d fd00::1/128 -p udp -m udp --dport 53 -j DNAT --to-destination [fd00::53]:9",
        "-A DNS11-REPLY -s fd00::53/128 -p tcp -m tcp --sport 9 -j SNAT --to-source [fd00::1]:53",
      ]) {
        assert.ok(rules.includes(`${line}\n`), `${line} in:\n${rules}`);
      }
    }
    // Another capture, without pods: the chains for pods are removed, too.
    const attachment = attachmentIn(netns, backend);
    await attachment.open();
    assert.doesNotMatch(await rulesIn(netns), /pod-|POD-|guard|GUARD|fd00/);
    await attachment.close();
    assert.deepEqual(rulesAlone(await rulesIn(netns)), []);
  });
}

test("iptables-legacy: rules installed before one family's failed are removed with the rest", async () => {
  await using netns = await Netns.create();
  const redirects = [
    DOCKER_REDIRECT,
    { bind: "fd00::53", fromInside: ["fd00::1"], fromPods: ["fd00::1"], replySource: "fd00::1" },
  ];
  // There is no interface with that index, so the IPv6 rules cannot be written.
  const capture: Capture = { redirects, bypassInterfaces: [9_999], guardsLoopback: true };
  const listening = redirects.map(({ bind }) => ({ ...DEAD, address: bind }));
  const plans = servingPlan({ capture, listening, zone: 7, sparedPorts: [], passthroughMark: 1, trialMark: 2 });
  await inside(netns, async (namespace) => {
    const rules = openRuleSet({ backend: "iptables-legacy", hasZones: true }, namespace);
    await assert.rejects(rules.install(plans, []), /Cannot pass interface 9999/);
    await rules.remove();
    rules.close();
  });
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

test("a chain that cannot be removed is reported and emptied", async () => {
  await using netns = await Netns.create();
  await writeLies(netns);
  await netns.enter("iptables-legacy", ["-t", "raw", "-A", "DNS11-ZONE", "-j", "RETURN"]);
  await assert.rejects(
    inside(netns, removeUnownedRules),
    (error) =>
      error instanceof Fault && error.code === "CHAIN_IN_USE" && error.message.startsWith("Cannot delete DNS11-ZONE:"),
  );
  assert.doesNotMatch(await rulesIn(netns), /-A DNS11-ZONE/);
});
