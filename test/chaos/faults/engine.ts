// Faults of the engine: dockerd or containerd is killed or restarted. Containers keep running (live-restore), but
// Docker's resolver is part of dockerd.

import { spawn } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";

import { SYSTEM_PATH } from "../../support/program/command.ts";
import { processesOf } from "../../support/rig/leftovers.ts";
import { unrefChild } from "../../support/rig/reaper.ts";
import { pause, waitFor } from "../../support/rig/wait.ts";
import type { FaultAction, FaultContext } from "../fault-context.ts";

const START_TRIES = 5;
const SOCKET = "/run/containerd/containerd.sock";

export const killDockerd: FaultAction = async (context, { forMs }) => await dockerdDown(context, "SIGKILL", forMs);
export const restartDockerd: FaultAction = async (context, { forMs }) => await dockerdDown(context, "SIGTERM", forMs);

async function dockerdDown(context: FaultContext, signal: "SIGKILL" | "SIGTERM", forMs: number): Promise<string> {
  const { engine, world, members, networks } = context;
  world.setDockerd(false);
  let tries = 0;
  try {
    await networks.exclusively(async () => await engine.kill(signal));
    await pause(forMs);
  } finally {
    for (let isUp = false; !isUp;) {
      tries++;
      isUp = await engine.startDaemon().then(
        () => true,
        (error: unknown) => {
          if (tries < START_TRIES) return false;
          throw error;
        },
      );
    }
    await Promise.all(
      members.filter((one) => one.unsteady === undefined).map(async (one) => await one.checkDockerResolver()),
    );
    world.setDockerd(true);
  }
  const without = members.filter(({ hasDockerResolver }) => !hasDockerResolver).map(({ name }) => name);
  return [
    ...(tries === 1 ? [] : [`it started after ${tries} attempts`]),
    ...(without.length === 0 ? [] : [`it created no resolver for ${without.join(", ")}`]),
  ].join("; ");
}

export const killContainerd: FaultAction = async ({ engine }, { forMs }) => {
  const pids = processesOf(engine).filter((pid) => nameOf(pid) === "containerd");
  const socket = `/proc/${engine.hostPid}/root${SOCKET}`;
  try {
    for (const pid of pids) process.kill(pid, "SIGKILL");
    await pause(forMs);
  } finally {
    rmSync(socket, { force: true });
    const place = ["--target", String(engine.hostPid), "--mount", "--net", "--"];
    const words = ["--config", "/run/containerd/config.toml", "--root", `${engine.folder}/containerd`];
    const child = spawn("nsenter", [...place, "containerd", ...words], {
      stdio: "ignore",
      detached: true,
      env: { ...process.env, PATH: SYSTEM_PATH },
    });
    unrefChild(child);
    await waitFor("containerd", () => (existsSync(socket) ? true : undefined));
  }
  return pids.length === 1 ? "" : `${pids.length} processes`;
};

function nameOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, "utf8").trim();
  } catch {
    return "";
  }
}
