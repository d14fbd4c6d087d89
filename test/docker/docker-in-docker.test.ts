/**
 * Docker in Docker: dns11 inside, outside, and both at once; and dns11 in a container with the host's PID namespace.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import type { Status } from "../../src/api/status.ts";
import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { dataOf, dig } from "../support/client/dig.ts";
import { type Dns11, startDns11 } from "../support/program/dns11.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { MACHINE_IMAGE, ensureImage } from "../support/engine/image.ts";
import { type InnerEngine, startInnerEngine, whyNoMachineInside } from "../support/engine/inner-engine.ts";
import { type Upstream, startUpstream } from "../support/servers/upstream.ts";
import { waitFor } from "../support/rig/wait.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url)).replace(/\/$/, "");
const PROGRAM = `${ROOT}/dist/cmd/dns11.js`;
const OURS_TTL = 5;
const DOCKERS_TTL = 600;

const skip = await whyNoMachineInside();
let engine: Engine;
let upstream: Upstream;
let outer: Container;
let inner: InnerEngine;
let innerWeb: Container;
let innerClient: Container;

before(async () => {
  if (skip !== false) return;
  engine = await startEngine({ suite: "bookworm" });
  upstream = await startUpstream(engine);
  await createNetwork(engine, "outside");
  outer = await runContainer(engine, { name: "outer", networks: ["outside"] });
  inner = await startInnerEngine(engine, { name: "dind", networks: ["outside"], mounts: [ROOT] });
  await createNetwork(inner, "inside");
  innerWeb = await runContainer(inner, { name: "web", networks: ["inside"] });
  innerClient = await runContainer(inner, { name: "client", networks: ["inside"] });
});
after(async () => {
  if (skip !== false) return;
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

/** Starts dns11 inside a container, and waits until its own status command there reports it ready. */
async function startInside(container: Container, args: readonly string[]): Promise<Status> {
  await container.host.dockerCommand(["exec", "--detach", container.id, "node", PROGRAM, "run", ...args]);
  const look = async (): Promise<Status | undefined> => {
    const { code, stdout } = await container.exec("node", [PROGRAM, "status", "--json", ...args]);
    const status = code === 0 ? (JSON.parse(stdout) as Status) : undefined;
    return status?.isReady === true ? status : undefined;
  };
  // A look takes as much processor time as a start.
  return await waitFor("the dns11 inside to be ready", look, { everyMs: 500 });
}

async function stopInside(container: Container, status: Status): Promise<void> {
  await container.exec("kill", ["-TERM", String(status.pid)]);
  await waitFor("the dns11 inside to end", async () =>
    (await container.exec("kill", ["-0", String(status.pid)])).code === 0 ? undefined : true,
  );
}

async function assertInner(ttl: number): Promise<void> {
  const reply = await dig(innerClient, "web");
  assert.deepEqual(dataOf(reply), [innerWeb.address("inside")]);
  assert.equal(reply.answer[0]?.ttl, ttl);
  // Dotted: the outer container has ndots:0, so the inner Docker does not forward names without a dot.
  const named = await dig(innerClient, "outer.outside");
  assert.deepEqual(dataOf(named), [outer.address("outside")], "an outer name, through both resolvers");
  assert.deepEqual(
    dataOf(await dig(innerClient, "a.ok.test")),
    ["192.0.2.1"],
    "an upstream name, through both resolvers",
  );
}

test(
  "inside docker-in-docker, dns11 serves the inner containers; outer and upstream names still resolve",
  { skip },
  async () => {
    await assertInner(DOCKERS_TTL);
    const status = await startInside(inner.container, []);
    assert.deepEqual(
      status.containers.map(({ name, state }) => `${name} ${state}`),
      ["client attached", "web attached"],
    );
    await assertInner(OURS_TTL);
    await stopInside(inner.container, status);
    await assertInner(DOCKERS_TTL);
  },
);

test("an inner and an outer instance each serve their own containers without conflict", { skip }, async () => {
  await using outside: Dns11 = await startDns11(engine);
  assert.deepEqual(
    (await outside.status()).containers.map(({ name, state }) => `${name} ${state}`),
    ["dind attached", "outer attached"],
  );
  await assertInner(DOCKERS_TTL);
  assert.equal((await dig(outer, "dind")).answer[0]?.ttl, OURS_TTL);
  const status = await startInside(inner.container, []);
  await assertInner(OURS_TTL);
  assert.equal((await dig(outer, "dind")).answer[0]?.ttl, OURS_TTL);
  assert.equal(await outside.stop(), 0);
  await assertInner(OURS_TTL);
  await stopInside(inner.container, status);
});

test(
  "in a container with the host's PID namespace and network, dns11 serves the engine that runs it",
  { skip },
  async () => {
    const node = ["/usr", "/etc/alternatives", "/etc/ld.so.cache", ROOT].map((path) => `--volume=${path}:${path}:ro`);
    const capabilities = ["SYS_ADMIN", "NET_ADMIN", "SYS_PTRACE"].map((name) => `--cap-add=${name}`);
    const unconfined = ["--security-opt=seccomp=unconfined", "--security-opt=apparmor=unconfined"];
    await using box = await runContainer(engine, {
      name: "dns11",
      image: await ensureImage(engine, MACHINE_IMAGE),
      args: [
        "--pid=host",
        "--network=host",
        ...capabilities,
        ...unconfined,
        ...node,
        `--volume=${engine.folder}:${engine.folder}`,
        "--tmpfs=/run:exec",
      ],
      command: ["sleep", "600"],
    });
    const args = ["-H", engine.host];
    const status = await startInside(box, args);
    const states = Object.fromEntries(status.containers.map(({ name, state }) => [name, state]));
    assert.deepEqual(states, { dind: "attached", dns11: "skipped", outer: "attached" });
    const reply = await dig(outer, "dind");
    assert.equal(reply.answer[0]?.ttl, OURS_TTL);
    assert.deepEqual(dataOf(await dig(outer, "a.ok.test")), ["192.0.2.1"]);
    process.kill(status.pid, "SIGKILL");
    await waitFor("Docker's resolver to be back", async () =>
      (await dig(outer, "+time=1", "dind")).answer[0]?.ttl === DOCKERS_TTL ? true : undefined,
    );
  },
);
