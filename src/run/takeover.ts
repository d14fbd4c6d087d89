/**
 * Takeover: how a run takes over from the one that serves. It learns all containers first. Then it has the other
 * process pause for as long as it takes to go on with the same sockets and rules. Queries wait in the sockets
 * meanwhile.
 */
import { setTimeout as sleep } from "node:timers/promises";

import { KEEPER_LIMITS } from "../keeper/limits.ts";
import { closeDescriptors } from "../keeper/held-descriptors.ts";
import type { Predecessor } from "../keeper/predecessor.ts";
import { Fault } from "../base/lib/fault.ts";
import type { Log } from "../base/log/log.ts";
import type { ContainerSide } from "./container-side.ts";
import type { Platform } from "./platform.ts";
import type { ExclusiveResources } from "./exclusive-resources.ts";
import type { RunKeeper } from "./run-keeper.ts";

const LOOK_EVERY_MS = 5;

interface TakeoverParts {
  readonly log: Log;
  readonly ground: Platform;
  readonly presence: ExclusiveResources;
  readonly safekeeping: RunKeeper;
  readonly containerSide: ContainerSide;
  /** Starts attaching. */
  readonly begin: () => void;
}

/** Returns once it serves in place of the predecessor, or when `signal` ends it before anything was touched. */
export async function takeOverFrom(predecessor: Predecessor, parts: TakeoverParts, signal: AbortSignal): Promise<void> {
  const { log, ground, presence, safekeeping, containerSide, begin } = parts;
  while (!containerSide.isSynced) {
    if (signal.aborted) return predecessor.channel.close();
    await sleep(LOOK_EVERY_MS);
  }
  const startMs = performance.now();
  const left = await predecessor.take();
  const namespaces = left.size;
  try {
    await presence.acquire();
  } catch (error) {
    predecessor.channel.close();
    for (const namespace of left.values()) closeDescriptors(namespace);
    throw error;
  }
  safekeeping.inherit(predecessor, left);
  begin();
  const deadlineMs = startMs + KEEPER_LIMITS.takeMs / 2;
  while (!containerSide.isSettled && performance.now() < deadlineMs) await sleep(LOOK_EVERY_MS);
  safekeeping.finishTakeover(ground.memory);
  log.info({ namespaces, ms: Math.round(performance.now() - startMs) }, "took over from the previous process");
}

/** Asks a predecessor that cannot hand over to exit, and waits for that. Docker's resolver answers in between. */
export async function endPredecessor({ main, channel }: Predecessor, log: Log): Promise<void> {
  channel.close();
  if (main <= 0) {
    throw new Fault("NOT_HANDED_OVER", "The running dns11 has another version, and its pid is unknown", {
      remedy: "Stop it first; Docker's own resolver answers meanwhile.",
    });
  }
  log.warn({ main }, "the running dns11 has another version, stopping it");
  process.kill(main, "SIGTERM");
  const deadlineMs = performance.now() + KEEPER_LIMITS.takeMs;
  while (isAlive(main) && performance.now() < deadlineMs) await sleep(LOOK_EVERY_MS);
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
