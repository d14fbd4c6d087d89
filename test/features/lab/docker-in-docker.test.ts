// Faults with docker-in-docker, as a job of continuous integration has it: a dns11 in a container of the inner engine serves that
// engine's containers, and a fault of the outer side reaches those who ask inside.

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { connect } from "dns11/client";

import { dataOf, dig } from "../../support/client/dig.ts";
import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { MACHINE_IMAGE, ensureImage } from "../../support/engine/image.ts";
import { type InnerEngine, startInnerEngine, whyNoMachineInside } from "../../support/engine/inner-engine.ts";
import { type CommandResult, SYSTEM_PATH } from "../../support/program/command.ts";
import { startDns11 } from "../../support/program/dns11.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";

const ROOT = fileURLToPath(new URL("../../../..", import.meta.url)).replace(/\/$/, "");
const PROGRAM = `${ROOT}/dist/cmd/dns11.js`;

const skip = await whyNoMachineInside();
let engine: Engine;
let upstream: Upstream;
let outer: Container;
let inner: InnerEngine;
let app: Container;
let db: Container;
/** A container of the inner engine, beside those that it serves. */
let box: Container;

before(async () => {
  if (skip !== false) return;
  engine = await startEngine({ suite: "bookworm" });
  upstream = await startUpstream(engine);
  await createNetwork(engine, "outside");
  outer = await runContainer(engine, { name: "outer", networks: ["outside"] });
  inner = await startInnerEngine(engine, { name: "dind", networks: ["outside"], mounts: [ROOT] });
  await createNetwork(inner, "inside");
  db = await runContainer(inner, { name: "db", networks: ["inside"] });
  app = await runContainer(inner, { name: "app", networks: ["inside"] });
  box = await startBox();
});
after(async () => {
  if (skip !== false) return;
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

/** The options of scripts/image/compose.yaml, and the machine's programs in place of an image. */
async function startBox(): Promise<Container> {
  const mounts = ["/usr", "/etc/alternatives", "/etc/ld.so.cache", ROOT].map((path) => `--volume=${path}:${path}:ro`);
  const started = await runContainer(inner, {
    name: "dns11",
    image: await ensureImage(inner, MACHINE_IMAGE),
    args: [
      ...["--pid=host", "--network=host", "--cap-drop=ALL"],
      ...["SYS_ADMIN", "NET_ADMIN", "SYS_PTRACE"].map((name) => `--cap-add=${name}`),
      "--security-opt=apparmor=unconfined",
      "--volume=/var/run/docker.sock:/var/run/docker.sock:ro",
      ...mounts,
    ],
    command: ["node", PROGRAM, "run"],
  });
  await waitFor(
    "dns11 to serve the inner engine",
    async () => {
      const { code, stdout } = await inside("status", "--json");
      if (code !== 0) return undefined;
      return (JSON.parse(stdout) as { isReady: boolean }).isReady ? true : undefined;
    },
    // A look takes as much processor time as a start.
    { everyMs: 500 },
  );
  return started;

  async function inside(...args: string[]): Promise<CommandResult> {
    return await started.exec("node", [PROGRAM, ...args]);
  }
}

test("a fault of the outer side reaches those who ask inside, and so do its answers", { skip }, async () => {
  await using outside = await startDns11(engine);
  const dns = await connect({ engine: engine.host, stateDir: outside.stateDir });
  try {
    await using lab = await dns.lab({ container: "dind" });
    await lab.fault("one.ok.test", { servfail: true });
    await lab.fault("outer.outside", { nxdomain: { count: 1 } });
    await lab.answer("api.ok.test", "192.0.2.99");
    assert.equal((await dig(app, "one.ok.test")).status, "SERVFAIL");
    assert.equal((await dig(app, "outer.outside")).status, "NXDOMAIN");
    assert.deepEqual(dataOf(await dig(app, "api.ok.test")), ["192.0.2.99"]);
    // What has no rule is as always, inside and outside.
    assert.deepEqual(dataOf(await dig(app, "two2.ok.test")), ["192.0.2.2"]);
    assert.deepEqual(dataOf(await dig(app, "db")), [db.address("inside")]);
    assert.deepEqual(dataOf(await dig(outer, "one.ok.test")), ["192.0.2.1"]);
    const { rules } = await lab.report();
    assert.deepEqual(
      rules.map(({ containers }) => containers.map(({ container, applied }) => [container, applied])),
      [[["dind", 1]], [["dind", 1]], [["dind", 1]]],
    );
  } finally {
    dns.close();
  }
});

test("a fault inside is for the inner containers: by the command in the container of dns11", { skip }, async () => {
  const script = `echo process $$; exec node ${PROGRAM} fault db --in app --nxdomain`;
  const docker = ["-H", engine.host, "exec", inner.container.id, "docker", "exec", box.id, "sh", "-c", script];
  const fault: ChildProcess = spawn("docker", docker, {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, PATH: SYSTEM_PATH },
  });
  let out = "";
  fault.stdout?.on("data", (chunk: Buffer) => (out += chunk.toString()));
  await waitFor("the fault", () => {
    assert.equal(fault.exitCode, null, out);
    return out.includes("in force: nxdomain for db; in container app (1 container now") ? true : undefined;
  });
  assert.equal((await dig(app, "db")).status, "NXDOMAIN");
  assert.deepEqual(dataOf(await dig(app, "two2.ok.test")), ["192.0.2.2"]);
  const [, pid = ""] = /^process (\d+)$/m.exec(out) ?? [];
  // The end of docker exec would leave it.
  await box.exec("kill", ["-INT", pid]);
  await waitFor("its end", async () => ((await dig(app, "db")).status === "NOERROR" ? true : undefined));
});
