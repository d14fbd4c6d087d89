/**
 * Takeover: how a run takes over from the one that serves. It learns all containers first. Then it has the other
 * process pause for as long as it takes to go on with the same sockets and rules. Queries wait in the sockets
 * meanwhile.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { KEEPER_LIMITS } from "../keeper/limits.ts";
import { closeDescriptors } from "../keeper/held-descriptors.ts";
import { isKeeper } from "../keeper/keeper-link.ts";
import type { Predecessor } from "../keeper/predecessor.ts";
import { Fault, codeOf, reasonOf } from "../base/lib/fault.ts";
import type { Log } from "../base/log/log.ts";
import type { ContainerSide } from "./container-side.ts";
import type { ExclusiveResources } from "./exclusive-resources.ts";
import type { RunKeeper } from "./run-keeper.ts";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { CALLS_DENIED } from "./deny-system-calls.ts";

const POLL_MS = 5;
const SETTLED_POLL_MS = 250;

interface TakeoverParts {
  readonly log: Log;
  readonly resources: ExclusiveResources;
  readonly keeper: RunKeeper;
  readonly containerSide: ContainerSide;
  /** Starts attaching. */
  readonly begin: () => void;
}

/** Returns once it serves in place of the old process, or when `signal` ends it before anything was touched. */
export async function takeOverFrom(predecessor: Predecessor, parts: TakeoverParts, signal: AbortSignal): Promise<void> {
  const { log, resources, keeper, containerSide, begin } = parts;
  while (!containerSide.synced.isOpen) {
    if (signal.aborted) return predecessor.channel.close();
    await sleep(POLL_MS);
  }
  const startMs = performance.now();
  const held = await predecessor.take();
  const namespaces = held.size;
  try {
    await resources.acquire();
  } catch (error) {
    predecessor.channel.close();
    for (const namespace of held.values()) closeDescriptors(namespace);
    throw error;
  }
  keeper.adopt(predecessor, held);
  begin();
  const deadlineMs = startMs + KEEPER_LIMITS.takeMs / 2;
  while (!containerSide.isSettled && performance.now() < deadlineMs) await sleep(POLL_MS);
  await keeper.finishTakeover();
  void whenSettled(containerSide).then(() => keeper.settled());
  log.info({ namespaces, ms: Math.round(performance.now() - startMs) }, "took over from the previous process");
}

async function whenSettled(containerSide: ContainerSide): Promise<void> {
  while (!(containerSide.isSettled && containerSide.areAllKnown))
    await sleep(SETTLED_POLL_MS, undefined, { ref: false });
}

/**
 * Asks an old process that cannot be taken over from to exit, and waits for that; or ends its keeper, if that refuses alone.
 * Docker's resolver answers in between.
 */
export async function endPredecessor({ main, keeper, refusing, channel }: Predecessor, log: Log): Promise<void> {
  channel.close();
  if (refusing > 0 && isKeeper(keeper)) {
    log.warn({ pid: keeper, namespaces: refusing }, "keeper that refuses queries has another version, ending it");
    return await endProcess(keeper, "SIGKILL");
  }
  if (main <= 0) {
    throw new Fault("NOT_HANDED_OVER", "The running dns11 has another version, and its pid is unknown", {
      remedy: "Stop it first; Docker's own resolver answers meanwhile.",
    });
  }
  log.warn({ pid: main }, "running dns11 has another version, stopping it");
  await endProcess(main, "SIGTERM");
}

/** For a process that could not take over, where a supervisor starts the program again. */
export function leftToSupervisor(): Fault {
  return new Fault("NOT_HANDED_OVER", "The running dns11 could not be taken over from, and has ended", {
    remedy: "The service manager (systemd) starts the new version now.",
  });
}

async function endProcess(pid: number, signal: NodeJS.Signals): Promise<void> {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (codeOf(error) !== "ESRCH") throw error;
  }
  const deadlineMs = performance.now() + KEEPER_LIMITS.takeMs;
  while (isAlive(pid) && performance.now() < deadlineMs) await sleep(POLL_MS);
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

const FLAG = "--replace";
const NOTIFY_SOCKET = "NOTIFY_SOCKET";

/**
 * Whether a process that a supervisor follows has started this one. The supervisor follows this one only after a takeover; if that
 * process ends without one, it starts the program again. Only `startReplacement` sets CALLS_DENIED.
 */
export function isStartedBySupervised(): boolean {
  return process.env[CALLS_DENIED] === "1" && (process.env[NOTIFY_SOCKET] ?? "") !== "";
}

/** Whether a supervisor such as systemd follows that process. */
export function isSupervised(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/environ`, "latin1")
      .split("\0")
      .some((each) => each.startsWith(`${NOTIFY_SOCKET}=`));
  } catch {
    return false;
  }
}

/** The first process of a PID namespace. */
const INIT_PID = 1;

/** Starts the program that is on disk now as a second process, which takes over. If that fails, nothing changes. */
export function startReplacement(log: Log): void {
  if (process.pid === INIT_PID) {
    log.warn("cannot replace process 1 of a container, restart the container instead");
    return;
  }
  const [, ...args] = process.argv;
  // The supervisor's watchdog is for the process that becomes its main process.
  const { WATCHDOG_PID: _, ...environment } = process.env;
  const child = spawn(process.execPath, [...process.execArgv, ...args, ...(args.includes(FLAG) ? [] : [FLAG])], {
    stdio: "inherit",
    env: { ...environment, [CALLS_DENIED]: "1" },
  });
  child.unref();
  log.info({ pid: child.pid }, "started a new process to take over");
  child.on("error", (error) =>
    log.warn({ reason: reasonOf(error) }, "cannot start a new process to take over; still serving"),
  );
  child.on("exit", (code, signal) => log.warn({ code, signal }, "the new process exited before it took over"));
}
