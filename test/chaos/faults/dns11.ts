// Faults of the dns11 process: killed, stopped, short of a resource.

import { readdirSync } from "node:fs";

import { check } from "../../support/program/command.ts";
import { pause } from "../../support/rig/wait.ts";
import type { Fault } from "../plan.ts";
import type { FaultAction, FaultContext } from "../fault-context.ts";
import { CLOCK_SIGNAL } from "../../support/program/stepped-clock.ts";

const AMOUNT = 1_000;
const MEGABYTE = 1024 * 1024;
const MEMORY_MARGIN_BYTES = 12 * MEGABYTE;
const DESCRIPTORS_MARGIN = 6;
const DESCRIPTORS_HARD = 20_000;
const HOUR_MS = 3_600_000;
// Backwards and forwards, from a small correction to a clock that was never set.
const STEPS_MS = [-20 * 365 * 24, -24, -1, -0.001, 0.001, 1, 24, 20 * 365 * 24].map((hours) => hours * HOUR_MS);
// This share of kills does not wait for dns11 to be ready and hits it while it starts.
const EARLY_SHARE = 0.25;
// A resumed process with a pending alarm ends within this time.
const ALARM_MS = 500;

export const kill: FaultAction = async (context, { forMs, amount }) => {
  if (amount / AMOUNT >= EARLY_SHARE) await context.supervisor.ready();
  return await end(context, "SIGKILL", forMs);
};

export const terminate: FaultAction = async (context, { forMs, amount }) => {
  if (amount / AMOUNT >= EARLY_SHARE) await context.supervisor.ready();
  return await end(context, "SIGTERM", forMs);
};

async function end(
  { supervisor, world }: FaultContext,
  signal: "SIGKILL" | "SIGTERM",
  downMs: number,
): Promise<string> {
  // Before it handles SIGTERM, the signal simply ends it.
  const ends = signal === "SIGTERM" ? [0, signal] : [signal];
  const work = async (): Promise<string> => {
    if (supervisor.pid === undefined) return "it was already down";
    world.setDns11("down");
    supervisor.signal(signal);
    await supervisor.ended();
    return "";
  };
  return await supervisor.whileAllowed(ends, work, downMs);
}

// For less and for more than the keeper's silence limit, or the hang alarm if there is no keeper.
export const stop: FaultAction = async ({ supervisor, world }, { forMs }) => {
  const pid = await supervisor.ready();
  return await supervisor.whileAllowed(["SIGKILL", "SIGALRM"], async () => {
    world.setDns11("stopped");
    process.kill(pid, "SIGSTOP");
    try {
      await pause(forMs);
    } finally {
      // If this process was ended, another one runs by then.
      if (supervisor.pid === pid) {
        process.kill(pid, "SIGCONT");
        world.setDns11("runs");
      }
    }
    await pause(ALARM_MS);
    await supervisor.ready();
    return supervisor.pid === pid ? "it continued" : "it was ended";
  });
};

export const memory: FaultAction = async ({ supervisor, world, group }, { forMs, amount }) => {
  await supervisor.ready();
  if (!group.canLimitMemory) return "skipped: no memory controller";
  const margin = Math.round((amount / AMOUNT) * MEMORY_MARGIN_BYTES);
  const before = supervisor.pid;
  return await supervisor.whileAllowed(["SIGKILL", "SIGABRT", "SIGTRAP", "SIGALRM", 1], async () => {
    world.setShortage("memory");
    try {
      group.limitMemory(group.memoryBytes + margin);
      await pause(forMs);
    } finally {
      group.limitMemory(undefined);
      world.setShortage(undefined);
    }
    // If the limit ends it, that must happen while it is allowed.
    await supervisor.ready();
    const outcome = supervisor.pid === before ? "it continued" : "it was ended";
    return `${(margin / MEGABYTE).toFixed(1)} MB to spare: ${outcome}`;
  });
};

export const descriptors: FaultAction = async ({ supervisor, world }, { forMs, amount }) => {
  const pid = await supervisor.ready();
  const most = limitFor(pid, Math.floor((amount / AMOUNT) * DESCRIPTORS_MARGIN));
  const limit = async (soft: number): Promise<void> => {
    await check("prlimit", ["--pid", String(pid), `--nofile=${soft}:${DESCRIPTORS_HARD}`]);
  };
  world.setShortage("descriptors");
  try {
    await limit(most);
    await pause(forMs);
  } finally {
    if (supervisor.pid === pid) await limit(DESCRIPTORS_HARD);
    world.setShortage(undefined);
  }
  return `limit ${most}`;
};

// The limit applies to the highest number, and there are free numbers below it: leave this many of them.
function limitFor(pid: number, spare: number): number {
  const taken = new Set(readdirSync(`/proc/${pid}/fd`).map(Number));
  let limit = 0;
  for (let free = 0; free <= spare; limit++) if (!taken.has(limit)) free++;
  return limit - 1;
}

export const fullFolder: FaultAction = async ({ supervisor, state }, { forMs }) => {
  await supervisor.ready();
  state.fill();
  try {
    await pause(forMs);
  } finally {
    state.empty();
  }
  return "";
};

// It must start with the full folder, or log why it cannot.
export const fullStart: FaultAction = async (context, { forMs }) => {
  const { supervisor, state } = context;
  await supervisor.ready();
  state.fill();
  try {
    await end(context, "SIGKILL", 0);
    return await supervisor.whileAllowed([1], async () => {
      await pause(forMs);
      const wasReady = supervisor.isReady;
      state.empty();
      // A process that started while the folder was full may still end because of it.
      await supervisor.ready();
      return wasReady ? "it was ready despite the full folder" : "it was ready only when there was space again";
    });
  } finally {
    state.empty();
  }
};

export const clock: FaultAction = async ({ supervisor, clock: wall }, { forMs, amount }: Fault) => {
  await supervisor.ready();
  const offsetMs = STEPS_MS[amount % STEPS_MS.length] ?? 0;
  const step = (ms: number): void => {
    wall.set(ms);
    supervisor.signal(CLOCK_SIGNAL);
  };
  step(offsetMs);
  try {
    await pause(forMs);
  } finally {
    step(0);
  }
  return `${(offsetMs / HOUR_MS).toFixed(3)} hours`;
};
