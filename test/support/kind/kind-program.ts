/**
 * KIND's own program, from Debian's package, with an engine of a test. Its nodes run systemd, from the files of the engine's host,
 * behind the simulation of KIND's entrypoint: KIND's own one is only in its node images, and no registry is needed here. They have no
 * Kubernetes, so that a cluster is complete but for what kubeadm does in it.
 */
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { Container } from "../engine/container.ts";
import type { Engine } from "../engine/engine.ts";
import { type Image, MACHINE_IMAGE, ensureImage } from "../engine/image.ts";
import { cachedRootfs } from "../engine/suite.ts";
import { type CommandResult, stdoutOf } from "../program/command.ts";
import { kindCommand } from "./kind-entrypoint.ts";
import { KindNode } from "./kind-node.ts";
import { disableIcmpRateLimit } from "./pod-host.ts";

const NODE_IMAGE: Image = {
  ...MACHINE_IMAGE,
  name: "dns11-test-kind-node",
  changes: [
    ...MACHINE_IMAGE.changes,
    "ENV container=docker",
    "STOPSIGNAL SIGRTMIN+3",
    `ENTRYPOINT ${JSON.stringify(kindCommand("boot"))}`,
  ],
};

/** KIND's nodes are privileged; a sandboxed machine cannot give all that this means, and then no container starts. */
const RUNTIME = `#!/bin/sh
bundle=
for word in "$@"; do
  case $bundle in next) sed -i 's/"CAP_SYS_RESOURCE",//g; s/,"CAP_SYS_RESOURCE"//g' "$word/config.json" ;; esac
  case $word in --bundle) bundle=next ;; *) bundle= ;; esac
done
exec runc "$@"
`;

const PATHS = ["/usr", "/etc/alternatives"];
const MINUTES_MS = 300_000;

export type KindRole = "control-plane" | "worker";

export class KindProgram {
  readonly #engine: Engine;
  readonly #program: string;

  private constructor(engine: Engine, program: string) {
    this.#engine = engine;
    this.#program = program;
  }

  /** Starts dockerd again, with a runtime for KIND's nodes. */
  static async on(engine: Engine): Promise<KindProgram> {
    const files = await cachedRootfs("kind", "forky", "kind", { isExtracted: true });
    const path = join(engine.folder, "runc-limited");
    writeFileSync(path, RUNTIME);
    chmodSync(path, 0o755);
    const settings = { runtimes: { limited: { path } }, "default-runtime": "limited" };
    writeFileSync(join(engine.folder, "daemon.json"), JSON.stringify(settings));
    await engine.restartDaemon();
    await ensureImage(engine, NODE_IMAGE);
    // Packets that a node forwards to the gateway are refused there.
    await disableIcmpRateLimit(engine.netnsPath);
    return new KindProgram(engine, join(files, "usr/bin/kind"));
  }

  async run(...args: string[]): Promise<CommandResult> {
    const env = { ...process.env, DOCKER_HOST: this.#engine.host, KUBECONFIG: join(this.#engine.folder, "kubeconfig") };
    return await this.#engine.enter(this.#program, args, { env, timeoutMs: MINUTES_MS });
  }

  /** As far as there is no kubeadm: containers, networks and settings. Returns what KIND says. */
  async create(cluster: string, roles: readonly KindRole[]): Promise<string> {
    const extraMounts = PATHS.map((path) => ({ hostPath: path, containerPath: path, readOnly: true }));
    const config = {
      kind: "Cluster",
      apiVersion: "kind.x-k8s.io/v1alpha4",
      networking: { ipFamily: "dual" },
      nodes: roles.map((role) => ({ role, extraMounts })),
    };
    const path = join(this.#engine.folder, `${cluster}.json`);
    writeFileSync(path, JSON.stringify(config));
    const image = ["--image", NODE_IMAGE.name, "--config", path, "--retain"];
    const { stdout, stderr } = await this.run("create", "cluster", "--name", cluster, ...image);
    return stdout + stderr;
  }

  /** By KIND's own list. */
  async nodes(cluster: string): Promise<KindNode[]> {
    const { stdout } = await this.run("get", "nodes", "--name", cluster);
    const names = stdout.split("\n").filter((name) => name !== "");
    const containers = await Promise.all(names.map(async (name) => await Container.of(this.#engine, name)));
    return containers.map((container) => new KindNode(container));
  }

  async delete(cluster: string): Promise<void> {
    stdoutOf(await this.run("delete", "cluster", "--name", cluster), "kind delete cluster");
  }
}
