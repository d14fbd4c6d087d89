/**
 * A takeover that failed: the process that paused serves again if it gets the lock, even where another program has taken its
 * metrics address meanwhile, and opens that when it is free.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type Server, createServer } from "node:net";
import { test } from "node:test";

import { LIMITS } from "../../../src/base/limits.ts";
import { MetricsListener } from "../../../src/control/server/metrics-listener.ts";
import type { ControlSocket } from "../../../src/control/server/http.ts";
import { Fault } from "../../../src/base/lib/fault.ts";
import { createLog } from "../../../src/base/log/log.ts";
import type { ContainerSide } from "../../../src/run/container-side.ts";
import { ExclusiveResources } from "../../../src/run/exclusive-resources.ts";
import { Handover } from "../../../src/run/handover.ts";
import type { RunKeeper } from "../../../src/run/run-keeper.ts";
import { pause, waitFor } from "../../support/rig/wait.ts";

/** A process that serves, without an engine and a keeper: what it does, in its order. */
class Paused implements Disposable {
  readonly steps: string[] = [];
  readonly handover: Handover;
  readonly listener = new MetricsListener({}, createLog("silent"));
  readonly resources: ExclusiveResources;
  address = "127.0.0.1:0";
  isLocked = false;
  cannotPause = false;

  private constructor() {
    const note = (step: string) => () => void this.steps.push(step);
    this.resources = new ExclusiveResources({
      takeInstance: () => {
        if (this.isLocked) throw new Fault("LOCKED", "Another dns11 already serves this engine");
        return { folder: "/f", controlPath: "/f/control", release: note("unlocked"), remove: () => undefined };
      },
      openControl: async () => {
        note("control")();
        return await Promise.resolve({ close: () => undefined } as unknown as ControlSocket);
      },
      openMetrics: async () => await this.listener.listen({ address: this.address, isExplicit: true, containers: 0 }),
      closeMetrics: () => this.listener.close(),
      startRecorder: () => undefined,
      closeRecorder: () => undefined,
    });
    this.handover = new Handover({
      log: createLog("silent"),
      containerSide: {
        pause: async () => {
          await Promise.resolve();
          if (this.cannotPause) throw new Fault("EMFILE", "there are no descriptors left");
        },
        resume: note("resumed"),
      } as unknown as ContainerSide,
      resources: this.resources,
      keeper: { yield: note("yielded"), detach: note("detached") } as unknown as RunKeeper,
      onCompleted: note("ended"),
    });
  }

  static async serving(): Promise<Paused> {
    const paused = new Paused();
    await paused.resources.acquire();
    paused.address = paused.listener.address ?? assert.fail();
    paused.steps.length = 0;
    return paused;
  }

  /** Serves, then pauses for a new process. */
  static async start(): Promise<Paused> {
    const paused = await Paused.serving();
    paused.handover.requested();
    await paused.until("yielded");
    paused.steps.length = 0;
    return paused;
  }

  async until(step: string): Promise<void> {
    await waitFor(step, () => (this.steps.includes(step) ? true : undefined), { timeoutMs: 10_000 });
  }

  /** Another program takes the metrics address. */
  async takeAddress(): Promise<Server> {
    const server = createServer()
      .unref()
      .listen(Number(this.address.split(":")[1]), "127.0.0.1");
    await once(server, "listening");
    return server;
  }

  [Symbol.dispose](): void {
    this.resources.release();
  }
}

test("a process that cannot pause serves on, and keeps the lock", async () => {
  using process = await Paused.serving();
  process.cannotPause = true;
  process.handover.requested();
  await process.until("resumed");
  assert.equal(process.handover.isServing, true);
  // The keeper says so when the new process has waited for too long.
  process.handover.cancelled();
  process.cannotPause = false;
  process.handover.requested();
  await process.until("yielded");
  assert.deepEqual(process.steps, ["resumed", "unlocked", "yielded"]);
});

test("the metrics address was taken during the pause: it serves again with the lock, and opens the address when it is free", async () => {
  using paused = await Paused.start();
  const other = await paused.takeAddress();
  paused.handover.cancelled();
  await paused.until("control");
  assert.deepEqual(paused.steps, ["resumed", "control"]);
  assert.equal(paused.listener.address, undefined);
  other.close();
  await waitFor("the metrics address", () => (paused.listener.address === paused.address ? true : undefined));
  assert.deepEqual(paused.steps, ["resumed", "control"], "what was open stays as it is");
  assert.ok(paused.handover.isServing);
});

test("it can be replaced while its metrics address is taken: it opens nothing then", async () => {
  using paused = await Paused.start();
  const other = await paused.takeAddress();
  paused.handover.cancelled();
  await paused.until("control");
  paused.handover.requested();
  await paused.until("yielded");
  other.close();
  await pause(2 * LIMITS.retryFirstMs);
  assert.equal(paused.listener.address, undefined);
  assert.deepEqual(paused.steps, ["resumed", "control", "unlocked", "yielded"]);
});

test("another process holds the lock: that one serves, and this one ends", async () => {
  using paused = await Paused.start();
  paused.isLocked = true;
  paused.handover.cancelled();
  await paused.until("ended");
  assert.deepEqual(paused.steps, ["detached", "ended"]);
});
