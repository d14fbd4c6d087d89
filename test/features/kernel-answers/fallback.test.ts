// Proves that a namespace in which answers of the kernel do not arrive goes back to the process, and to the kernel again once
// they would arrive: after a change of rules by itself, and at once where an operator asks for it. And that the reason shown is
// always that of the addresses which are captured now.

import assert from "node:assert/strict";
import { closeSync, openSync } from "node:fs";
import { after, test } from "node:test";

import { CONTAINER_MODE } from "../../../src/container/attach/attach-mode.ts";
import { Attachment } from "../../../src/container/attach/attachment.ts";
import { CONTAINER_CAPTURE, DOCKER_REDIRECT } from "../../../src/container/capture/capture.ts";
import { KERNEL_ANSWER_LIMITS } from "../../../src/features/kernel-answers/limits.ts";
import type { ExtraPlace, NamespaceExtra } from "../../../src/container/attach/namespace-extra.ts";
import { NamespaceAnswers } from "../../../src/features/kernel-answers/namespace-answers.ts";
import { KernelAnswers } from "../../../src/features/kernel-answers/kernel/kernel-answers.ts";
import { Attachments, VIEW, answering } from "../../support/program/attachments.ts";
import { ENDS_CHAIN, LETS_PASS, attachOther } from "../../support/packets/other-program.ts";
import { Netns } from "../../support/rig/netns.ts";
import { waitFor } from "../../support/rig/wait.ts";

// A firewall that drops packets which connection tracking has not seen.
const WALL = "table inet wall { chain in { type filter hook input priority 0; ct state untracked drop; }; }";
const PENDING = { by: "process", reason: "not probed yet", isPending: true };
const NOT_ARRIVED = { by: "process", reason: "an answer of the kernel did not arrive" };

const attaching = new Attachments();
const kernelAnswers = new KernelAnswers({ ...KERNEL_ANSWER_LIMITS, spaces: 4 });

after(() => {
  kernelAnswers.close();
  attaching[Symbol.dispose]();
});

/** The kernel's answers in one namespace, which has its turn when a test says so. */
class Kernel implements NamespaceExtra {
  #served: NamespaceAnswers | undefined;
  #isDue = false;

  open(place: ExtraPlace): NamespaceAnswers {
    this.#served = new NamespaceAnswers(place, {
      kernelAnswers,
      reason: undefined,
      turns: { add: () => (this.#isDue = true) },
      clientOf: () => undefined,
      onClose: () => undefined,
    });
    return this.#served;
  }

  get report(): NamespaceAnswers["report"] {
    return this.#served?.report;
  }

  /** As the reconciler does: where the kernel is to answer, its program is attached and verified, too. */
  async verify(attachment: Attachment): Promise<void> {
    this.#isDue = false;
    await attachment.verify();
    if (!this.#isDue) return;
    await this.#served?.attach();
    await attachment.verify();
  }
}

async function untrackedRules(netns: Netns): Promise<string> {
  const { stdout } = await netns.enter("nft", ["list", "table", "ip", "dns11"]);
  return stdout
    .split("\n")
    .filter((line) => line.includes("notrack"))
    .join("\n");
}

test("where a firewall comes the process answers, and where it has gone the kernel does", async () => {
  await using netns = await Netns.create();
  const kernel = new Kernel();
  const attachment = attaching.in(netns.netnsPath, { openEndpoint: answering, extra: kernel });
  try {
    await attachment.open();
    await kernel.verify(attachment);
    assert.deepEqual(kernel.report, { by: "kernel" });
    assert.equal((await netns.enter("nft", [WALL])).code, 0);
    await kernel.verify(attachment);
    assert.equal(kernel.report?.by, "process");
    assert.equal(attachment.state.kind, "attached");
    assert.equal(await untrackedRules(netns), "");
    // Only probes are led to the program to try it, and it fails as before.
    attachment.retryExtra();
    await kernel.verify(attachment);
    assert.deepEqual(kernel.report, NOT_ARRIVED);
    assert.equal(attachment.state.kind, "attached");
    assert.equal(await untrackedRules(netns), "");
    await netns.enter("nft", ["delete", "table", "inet", "wall"]);
    attachment.retryExtra();
    await kernel.verify(attachment);
    assert.deepEqual(kernel.report, { by: "kernel" });
    assert.notEqual(await untrackedRules(netns), "");
    assert.equal(attachment.state.kind, "attached");
  } finally {
    await attachment.close();
  }
});

test("behind a program that ends the chain the process answers; before it, and behind one that does not, the kernel", async () => {
  await using netns = await Netns.create();
  const kernel = new Kernel();
  const attachment = attaching.in(netns.netnsPath, { openEndpoint: answering, extra: kernel });
  const comeBefore = (instructions: string): number => {
    const fd = openSync(netns.netnsPath, "r");
    try {
      return attaching.runner.within(fd, () => attachOther(instructions));
    } finally {
      closeSync(fd);
    }
  };
  const links: number[] = [];
  try {
    await attachment.open();
    await kernel.verify(attachment);
    links.push(comeBefore(LETS_PASS));
    await attachment.verify();
    assert.deepEqual(kernel.report, { by: "kernel" });
    links.push(comeBefore(ENDS_CHAIN));
    await attachment.verify();
    assert.equal(kernel.report?.by, "process");
    assert.equal(attachment.state.kind, "attached");
    // Attached again, its program comes first.
    attachment.retryExtra();
    await kernel.verify(attachment);
    assert.deepEqual(kernel.report, { by: "kernel" });
  } finally {
    await attachment.close();
    for (const link of links) closeSync(link);
  }
});

test("a change of rules brings the kernel back without being asked", async () => {
  await using netns = await Netns.create();
  assert.equal((await netns.enter("nft", [WALL])).code, 0);
  const kernel = new Kernel();
  const attachment = attaching.in(netns.netnsPath, { openEndpoint: answering, extra: kernel });
  try {
    await attachment.open();
    await kernel.verify(attachment);
    assert.deepEqual(kernel.report, NOT_ARRIVED);
    await netns.enter("nft", ["delete", "table", "inet", "wall"]);
    await waitFor("the kernel to answer", async () => {
      await kernel.verify(attachment);
      return kernel.report?.by === "kernel" ? true : undefined;
    });
  } finally {
    await attachment.close();
  }
});

test("once a node's addresses are given up, the reason shown is not that of the node any more", async () => {
  await using netns = await Netns.create();
  const node = { ...CONTAINER_CAPTURE, redirects: [DOCKER_REDIRECT, { ...DOCKER_REDIRECT, bind: "127.0.0.12" }] };
  let capture = CONTAINER_CAPTURE;
  const mode = { ...CONTAINER_MODE, capture: () => capture };
  const kernel = new Kernel();
  const parts = attaching.parts({ openEndpoint: answering, extra: kernel });
  const attachment = new Attachment({ containerId: "x", sandboxKey: netns.netnsPath, pid: 0 }, mode, VIEW, parts);
  const captured = async (next: typeof capture): Promise<unknown> => {
    capture = next;
    await attachment.updateCapture();
    return kernel.report;
  };
  const onlyContainers = "only queries to 127.0.0.11 in a container are answered by the kernel";
  try {
    await attachment.open();
    await kernel.verify(attachment);
    assert.deepEqual(kernel.report, { by: "kernel" });
    assert.deepEqual(await captured(node), { by: "process", reason: onlyContainers, isMeant: true });
    assert.deepEqual(await captured(CONTAINER_CAPTURE), PENDING);
    await kernel.verify(attachment);
    assert.deepEqual(kernel.report, { by: "kernel" });
    // The same where it did not work before.
    assert.equal((await netns.enter("nft", [WALL])).code, 0);
    await kernel.verify(attachment);
    assert.equal(kernel.report?.by, "process");
    assert.deepEqual(await captured(node), { by: "process", reason: onlyContainers, isMeant: true });
    assert.deepEqual(await captured(CONTAINER_CAPTURE), PENDING);
    await kernel.verify(attachment);
    assert.deepEqual(kernel.report, NOT_ARRIVED);
  } finally {
    await attachment.close();
  }
});
