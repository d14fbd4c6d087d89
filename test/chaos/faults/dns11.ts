// Faults of the process of dns11 itself: how it is ended, stopped, and what it runs short of.

import { readdirSync } from "node:fs";

import { check } from "../../support/program/command.ts";
import { pause } from "../../support/rig/wait.ts";
import type { Fault } from "../plan.ts";
import type { FaultAction, FaultContext } from "../fault-context.ts";
import { CLOCK_SIGNAL } from "../stepped-clock.ts";

const AMOUNT = 1_000;
const MEGABYTE = 1024 * 1024;
const MEMORY_MARGIN_BYTES = 12 * MEGABYTE;
const DESCRIPTORS_MARGIN = 6;
const DESCRIPTORS_HARD = 20_000;
const HOUR_MS = 3_600_000;
// Backwards and forwards, from a correction to a clock that was never set.
const STEPS_MS = [-20 * 365 * 24, -24, -1, -0.001, 0.001, 1, 24, 20 * 365 * 24].map((hours) => hours * HOUR_MS);
// One in so many ends is not waited for until dns11 is ready: it hits dns11 while it starts.
const EARLY_SHARE = 0.25;
// A process that goes on and has an alarm waiting ends within this.
const ALARM_MS = 500;

export const kill: FaultAction = async (context, { forMs, amount }) => {
  if (amount / AMOUNT >= EARLY_SHARE) await context.supervisor.ready();
  return await end(context, "SIGKILL", forMs);
};

export const terminate: FaultAction = async (context, { forMs, amount }) => {
  if (amount / AMOUNT >= EARLY_SHARE) await context.supervisor.ready();
  return await end(context, "SIGTERM", forMs);
};

async function end({ supervisor, world }: FaultContext, signal: "SIGKILL" | "SIGTERM", downMs: number): Promise<string> {
  // Before it listens for SIGTERM it simply ends by it.
  const ends = signal === "SIGTERM" ? [0, signal] : [signal];
  const work = async (): Promise<string> => {
    if (supervisor.pid === undefined) return "it was down already";
    world.setDns11("down");
    supervisor.signal(signal);
    await supervisor.ended();
    return "";
  };
  return await supervisor.whileAllowed(ends, work, downMs);
}

// For less and for more than its keeper lets it be silent, or the hang alarm takes where there is none.
export const stop: FaultAction = async ({ supervisor, world }, { forMs }) => {
  const pid = await supervisor.ready();
  return await supervisor.whileAllowed(["SIGKILL", "SIGALRM"], async () => {
    world.setDns11("stopped");
    process.kill(pid, "SIGSTOP");
    try {
      await pause(forMs);
    } finally {
      // Whatever runs by then is another process where this one was ended.
      if (supervisor.pid === pid) {
        process.kill(pid, "SIGCONT");
        world.setDns11("runs");
      }
    }
    await pause(ALARM_MS);
    await supervisor.ready();
    return supervisor.pid === pid ? "it went on" : "it was ended";
  });
};

export const memory: FaultAction = async ({ supervisor, world, group }, { forMs, amount }) => {
  await supervisor.ready();
  if (!group.canLimitMemory) return "not done: there is no controller for memory here";
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
    // What was to end by it is to end while that is allowed.
    await supervisor.ready();
    const outcome = supervisor.pid === before ? "it went on" : "it was ended";
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
  return `${most} at most`;
};

// The limit is about the highest number, and numbers below it are free: so many of them are left.
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

// It has to start with the full folder, or say why it cannot.
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
      // One that began while the folder was full may still end by it.
      await supervisor.ready();
      return wasReady ? "it was ready all the same" : "it was ready only when there was room again";
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
