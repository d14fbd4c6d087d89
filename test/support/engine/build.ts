/**
 * Builds: `docker build` with one RUN step, by BuildKit in dockerd or by the classic builder. Debian 12's docker command has a client of BuildKit
 * in it; newer ones leave that to a plugin, which Debian 12 and the tests' other releases do not have.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { type CommandResult, run } from "../program/command.ts";
import type { NetworkContext } from "../rig/netns.ts";
import { textOf } from "../rig/text-of.ts";
import { waitFor } from "../rig/wait.ts";
import type { DockerHost } from "./docker-host.ts";
import type { Engine } from "./engine.ts";
import { ensureImage } from "./image.ts";

const DOCKER = "/usr/bin/docker";

/** An engine of the machine, or one inside a container. */
export type BuildHost = DockerHost & { readonly socketPath: string };

export interface BuildOptions {
  readonly builder?: "buildkit" | "classic";
  /** Arguments of `docker build`. */
  readonly args?: readonly string[];
}

/** Runs a script as a step, and returns what it wrote; the step's exit code is not looked at. */
export async function buildStep(
  engine: BuildHost,
  script: string,
  { builder = "buildkit", args = [] }: BuildOptions = {},
): Promise<string> {
  const { code, stdout, stderr } = await build(engine, `${script}\ntrue`, builder, args);
  const all = `${stdout}\n${stderr}`;
  if (code !== 0) throw new Error(`docker build: exit ${code}: ${all}`);
  if (builder === "classic") return all;
  const lines = [...all.matchAll(/^#\d+ \d+\.\d+ (.*)$/gm)];
  return lines.map(([, line]) => line).join("\n");
}

async function build(
  engine: BuildHost,
  script: string,
  builder: string,
  args: readonly string[],
): Promise<CommandResult> {
  const image = await ensureImage(engine);
  const folder = await mkdtemp(join(tmpdir(), "d11-build-"));
  await writeFile(join(folder, "step.sh"), script);
  await writeFile(join(folder, "Dockerfile"), `FROM ${image}\nCOPY step.sh /step.sh\nRUN sh /step.sh\n`);
  const plain = builder === "buildkit" ? ["--progress=plain"] : [];
  const env = {
    DOCKER_BUILDKIT: builder === "buildkit" ? "1" : "0",
    DOCKER_CONFIG: folder,
  };
  const command = ["-H", `unix://${engine.socketPath}`, "build", "--no-cache", ...plain, ...args, folder];
  try {
    return await run(DOCKER, command, { env: { ...process.env, ...env } });
  } finally {
    await rm(folder, { recursive: true });
  }
}

let started = 0;

/** A step that runs until it is disposed of. */
export interface RunningStep extends AsyncDisposable, NetworkContext {
  /** On the default bridge, as Docker lists it there. */
  readonly address: string;
  readonly mac: string;
}

export async function startStep(engine: Engine): Promise<RunningStep> {
  const before = await groupsOf(engine);
  started += 1;
  // BuildKit runs steps that are the same once.
  const ended = build(engine, `sleep 600 # ${started}`, "buildkit", []);
  const group = await waitFor("the step to run", async () =>
    (await groupsOf(engine)).find((each) => !before.includes(each) && processesIn(each).length > 0),
  );
  // The first processes of the group are those that make the step's namespaces.
  const found = await waitFor("the step to have a network", async () => {
    for (const pid of processesIn(group)) {
      const enter = enterer(pid);
      const { stdout } = await enter("ip", ["-o", "address", "show", "dev", "eth0"]);
      const own = / inet ([\d.]+)\//.exec(stdout)?.[1];
      const listed = (await listedOnBridge(engine)).find(({ address }) => address === own);
      if (listed !== undefined) return { ...listed, enter };
    }
    return undefined;
  });
  return {
    ...found,
    [Symbol.asyncDispose]: async () => {
      for (const pid of processesIn(group)) await run("kill", ["-KILL", String(pid)]);
      await ended;
    },
  };
}

function enterer(pid: number): NetworkContext["enter"] {
  return async (command, args = [], options = {}) =>
    await run("nsenter", [`--net=/proc/${pid}/ns/net`, "--", command, ...args], options);
}

/** The control groups of running steps. */
async function groupsOf(engine: Engine): Promise<string[]> {
  const found = await run("find", ["/sys/fs/cgroup", "-path", `*/${engine.id}/buildkit/*`, "-name", "cgroup.procs"]);
  return found.stdout.split("\n").filter((path) => path !== "");
}

function processesIn(group: string): number[] {
  return textOf(group)
    .split("\n")
    .filter((line) => line !== "")
    .map(Number);
}

async function listedOnBridge(engine: Engine): Promise<{ address: string; mac: string }[]> {
  const { Containers } = (await engine.api("/networks/bridge")) as {
    Containers: Record<string, { IPv4Address: string; MacAddress: string }>;
  };
  return Object.values(Containers).map(({ IPv4Address, MacAddress }) => {
    return { address: IPv4Address.split("/")[0] ?? "", mac: MacAddress };
  });
}
