// Tests of the container image: it builds from its Dockerfile, is small, contains its own Node, and as a container with
// exactly the settings of the compose example it serves its neighbours and reports itself healthy.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";

import { parse } from "yaml";

import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { dig } from "../support/client/dig.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { IMAGE, buildPackageImage } from "../support/engine/package-image.ts";
import { waitFor } from "../support/rig/wait.ts";

type Service = {
  readonly pid: string;
  readonly network_mode: string;
  readonly cap_drop: readonly string[];
  readonly cap_add: readonly string[];
  readonly security_opt: readonly string[];
  readonly read_only: boolean;
  readonly volumes: readonly string[];
  readonly ulimits: { readonly nofile: number };
  readonly healthcheck: { readonly test: readonly string[] };
};

const { services } = parse(readFileSync("scripts/image/compose.yaml", "utf8")) as {
  services: Record<string, Service>;
};
const service = services["dns11"] as Service;
let engine: Engine;
let web: Container;

before(async () => {
  engine = await startEngine({ suite: "bookworm" });
  await createNetwork(engine, "shop");
  web = await runContainer(engine, { name: "web", networks: ["shop"] });
  await runContainer(engine, { name: "db", networks: ["shop"] });
});
after(async () => await engine[Symbol.asyncDispose]());

test("the image builds and contains little besides its own Node", async () => {
  await buildPackageImage(engine);
  const runImage = async (...args: string[]): Promise<string> => await engine.docker("run", "--rm", IMAGE, ...args);
  assert.match(
    await runImage("version"),
    new RegExp(`^Node ${process.versions.node.replaceAll(".", "\\.")}, linux/`, "m"),
  );
  const size = async (name: string): Promise<number> =>
    Number(await engine.docker("image", "inspect", "--format", "{{.Size}}", name));
  const own = ((await size(IMAGE)) - (await size("dns11-base"))) / 1e6;
  assert.ok(own < 140, `${own} MB`);
});

test("the compose example grants no more than needed", () => {
  assert.deepEqual(service.cap_drop, ["ALL"]);
  assert.deepEqual([...service.cap_add].toSorted(), ["NET_ADMIN", "SYS_ADMIN", "SYS_PTRACE"]);
  assert.ok(service.volumes.includes("/var/run/docker.sock:/var/run/docker.sock:ro"));
});

test("as a container dns11 serves its neighbours and is healthy", async () => {
  const id = await engine.docker("run", "--detach", "--name", "dns11", ...runFlags(), IMAGE);
  const log = async (): Promise<string> => {
    const { stdout, stderr } = await engine.dockerCommand(["logs", id]);
    return stdout + stderr;
  };
  await waitFor("a name that dns11 answers", async () => {
    const state = await engine.docker("inspect", "--format", "{{.State.Status}}", id);
    if (state !== "running") throw new Error(`dns11 exited: ${await log()}`);
    return (await dig(web, "db")).answer[0]?.ttl === 5 ? true : undefined;
  });
  assert.match(await engine.docker("exec", id, "dns11", "ps"), /^web +ok/m);
  await waitFor(
    "the container to be healthy",
    async () => (await engine.docker("inspect", "--format", "{{.State.Health.Status}}", id)) === "healthy" || undefined,
  );
  await engine.docker("stop", "--time", "20", id);
  assert.equal(await engine.docker("inspect", "--format", "{{.State.ExitCode}}", id), "0", await log());
  assert.equal((await dig(web, "db")).answer[0]?.ttl, 600);
});

// The settings of the example as flags of docker run; the engine's socket has another path in a test.
function runFlags(): string[] {
  const opts = service.security_opt.map((each) => each.replace(/:/, "="));
  return [
    `--pid=${service.pid}`,
    `--network=${service.network_mode}`,
    ...service.cap_drop.map((name) => `--cap-drop=${name}`),
    ...service.cap_add.map((name) => `--cap-add=${name}`),
    ...opts.map((each) => `--security-opt=${each}`),
    ...(service.read_only ? ["--read-only"] : []),
    ...service.volumes.map((each) => `--volume=${each.replace(/^\/var\/run\/docker\.sock:/, `${engine.socketPath}:`)}`),
    `--ulimit=nofile=${Math.min(service.ulimits.nofile, openFilesMax())}`,
    `--health-cmd=${service.healthcheck.test.slice(1).join(" ")}`,
    "--health-interval=1s",
  ];
}

// A sandboxed machine may not raise its own limit.
function openFilesMax(): number {
  return Number(/^Max open files +\d+ +(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1]);
}
