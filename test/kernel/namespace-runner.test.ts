/**
 * The NamespaceRunner on the real kernel: whatever is thrown inside, at whatever step, the thread is back in its own
 * namespace; and if it cannot return, the process aborts.
 */
import assert from "node:assert/strict";
import { closeSync, openSync, readdirSync, readlinkSync } from "node:fs";
import { test } from "node:test";

import { NamespaceRunner, namespaceId, warmThreadPool } from "../../src/container/namespace/namespace-runner.ts";
import { bindSockets, closeSockets } from "../../src/container/namespace/sockets.ts";
import { replaceTableCommands } from "../../src/container/rules/nft-commands.ts";
import { servingPlan } from "../../src/container/rules/plan.ts";
import { CONTAINER_CAPTURE } from "../../src/container/capture/capture.ts";
import { setNetworkNamespace } from "../../src/kernel/libc.ts";
import { NetlinkMemory } from "../../src/kernel/netlink-socket.ts";
import { untilClosed } from "../../src/kernel/in-pool.ts";
import { NftSocket } from "../../src/kernel/nfnetlink.ts";
import { Netns } from "../support/rig/netns.ts";

const here = (): string => readlinkSync("/proc/thread-self/ns/net");

test("work runs inside; its result and the thread return", async () => {
  await using netns = await Netns.create();
  const runner = new NamespaceRunner();
  const home = here();
  const fd = openSync(netns.netnsPath, "r");
  const inside = runner.within(fd, here);
  assert.notEqual(inside, home);
  assert.equal(here(), home);
  closeSync(fd);
  runner.close();
});

test("an error at any step of the work leaves the thread in its own namespace and nothing of ours inside", async () => {
  await using netns = await Netns.create();
  const runner = new NamespaceRunner();
  const memory = new NetlinkMemory();
  const home = here();
  const fd = openSync(netns.netnsPath, "r");
  const steps = ["enter", "sockets", "nft socket", "transaction"] as const;
  for (const failing of steps) {
    const reach = (step: (typeof steps)[number]): void => {
      if (step === failing) throw new Error(`at ${step}`);
    };
    let nft: NftSocket | undefined;
    let sockets: ReturnType<typeof bindSockets> = [];
    const install = async (): Promise<void> => {
      const made = runner.within(fd, () => {
        reach("enter");
        sockets = bindSockets(CONTAINER_CAPTURE.redirects);
        reach("sockets");
        nft = new NftSocket(memory);
        reach("nft socket");
        return nft;
      });
      const listening = sockets.map((pair) => pair.listening);
      const marks = { passthroughMark: 1, trialMark: 2 };
      const plan = servingPlan({ capture: CONTAINER_CAPTURE, listening, zone: 1, sparedPorts: [], ...marks });
      await made.transact(replaceTableCommands([], plan, true));
      reach("transaction");
    };
    await assert.rejects(install(), { message: `at ${failing}` });
    await untilClosed(() => nft?.close());
    closeSockets(sockets);
    assert.equal(here(), home, failing);
    assert.equal((await netns.enter("nft", ["list", "ruleset"])).stdout, "", failing);
  }
  closeSync(fd);
  runner.close();
});

test("a namespace that cannot be entered throws, and the thread stays in its own", () => {
  const runner = new NamespaceRunner();
  const home = here();
  const notOne = openSync("/proc/self/status", "r");
  let ran = false;
  assert.throws(() => runner.within(notOne, () => (ran = true)), { code: "EINVAL" });
  assert.equal(ran, false);
  assert.equal(here(), home);
  closeSync(notOne);
  runner.close();
});

test("if the return fails the process aborts, whatever the work did", async () => {
  await using netns = await Netns.create();
  const fd = openSync(netns.netnsPath, "r");
  let entered = 0;
  let aborted = 0;
  class Ended extends Error {}
  const runner = new NamespaceRunner({
    enter: () => {
      // Entering works; returning does not.
      if (++entered % 2 === 0) throw new Error("no way home");
    },
    abort: () => {
      aborted++;
      throw new Ended();
    },
  });
  assert.throws(() => runner.within(fd, () => 1), Ended);
  assert.throws(
    () =>
      runner.within(fd, () => {
        throw new Error("work");
      }),
    Ended,
  );
  assert.equal(aborted, 2);
  closeSync(fd);
  runner.close();
});

test("the scratch namespace is empty, and is gone afterwards", () => {
  const runner = new NamespaceRunner();
  const home = here();
  const scratch = runner.withinScratch(here);
  assert.notEqual(scratch, home);
  assert.equal(here(), home);
  runner.close();
});

test("the pool's threads are in our own namespace, even if first used after entering another one", async () => {
  await using netns = await Netns.create();
  await warmThreadPool();
  const runner = new NamespaceRunner();
  const fd = openSync(netns.netnsPath, "r");
  runner.within(fd, () => undefined);
  const namespaces = new Set(
    readdirSync("/proc/self/task").map((task) => readlinkSync(`/proc/self/task/${task}/ns/net`)),
  );
  assert.deepEqual([...namespaces], [here()]);
  closeSync(fd);
  runner.close();
});

test("two descriptors of one namespace have the same id, those of two do not", async () => {
  await using one = await Netns.create();
  await using two = await Netns.create();
  const [a, b, c] = [one, one, two].map(({ netnsPath }) => openSync(netnsPath, "r")) as [number, number, number];
  assert.equal(namespaceId(a), namespaceId(b));
  assert.notEqual(namespaceId(a), namespaceId(c));
  const home = openSync("/proc/thread-self/ns/net", "r");
  setNetworkNamespace(home);
  [a, b, c, home].forEach((fd) => closeSync(fd));
});
