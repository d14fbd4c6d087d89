// Proves that a namespace in which answers of the kernel do not arrive goes back to the process, and to the kernel again once
// they would arrive: after a change of rules by itself, and at once where an operator asks for it.

import assert from "node:assert/strict";
import { after, test } from "node:test";

import { LIMITS } from "../../src/base/limits.ts";
import { KernelAnswers } from "../../src/kernel/answers/kernel-answers.ts";
import { Attachments, answering } from "../support/program/attachments.ts";
import { Netns } from "../support/rig/netns.ts";
import { waitFor } from "../support/rig/wait.ts";

// A firewall that drops packets which connection tracking has not seen.
const WALL = "table inet wall { chain in { type filter hook input priority 0; ct state untracked drop; }; }";
const NOT_ARRIVED = { by: "process", reason: "an answer of the kernel did not arrive" };

const attaching = new Attachments();
const kernelAnswers = new KernelAnswers({ ...LIMITS.kernelAnswers, spaces: 4 });

after(() => {
  kernelAnswers.close();
  attaching[Symbol.dispose]();
});

async function untrackedRules(netns: Netns): Promise<string> {
  const { stdout } = await netns.enter("nft", ["list", "table", "ip", "dns11"]);
  return stdout
    .split("\n")
    .filter((line) => line.includes("notrack"))
    .join("\n");
}

test("where a firewall comes the process answers, and where it has gone the kernel does", async () => {
  await using netns = await Netns.create();
  const attachment = attaching.in(netns.netnsPath, { openEndpoint: answering, kernelAnswers });
  try {
    attachment.open();
    await attachment.verify();
    assert.deepEqual(attachment.answeredBy, { by: "kernel" });
    assert.equal((await netns.enter("nft", [WALL])).code, 0);
    await attachment.verify();
    assert.equal(attachment.answeredBy?.by, "process");
    assert.equal(attachment.state.kind, "attached");
    assert.equal(await untrackedRules(netns), "");
    // Only probes are led to the program to try it, and it fails as before.
    attachment.retryKernel();
    await attachment.verify();
    assert.deepEqual(attachment.answeredBy, NOT_ARRIVED);
    assert.equal(attachment.state.kind, "attached");
    assert.equal(await untrackedRules(netns), "");
    await netns.enter("nft", ["delete", "table", "inet", "wall"]);
    attachment.retryKernel();
    await attachment.verify();
    assert.deepEqual(attachment.answeredBy, { by: "kernel" });
    assert.notEqual(await untrackedRules(netns), "");
    assert.equal(attachment.state.kind, "attached");
  } finally {
    attachment.close();
  }
});

test("a change of rules brings the kernel back without being asked", async () => {
  await using netns = await Netns.create();
  assert.equal((await netns.enter("nft", [WALL])).code, 0);
  const attachment = attaching.in(netns.netnsPath, { openEndpoint: answering, kernelAnswers });
  try {
    attachment.open();
    await attachment.verify();
    assert.deepEqual(attachment.answeredBy, NOT_ARRIVED);
    await netns.enter("nft", ["delete", "table", "inet", "wall"]);
    await waitFor("the kernel to answer", async () => {
      await attachment.verify();
      return attachment.answeredBy?.by === "kernel" ? true : undefined;
    });
  } finally {
    attachment.close();
  }
});
