// Clients: the resolvers that programs use, each as a small program in a container of its own, with the container's resolv.conf.

import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { copyFileSync, mkdirSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";

import { type Container, runContainer } from "../../support/engine/container.ts";
import type { Engine } from "../../support/engine/engine.ts";
import { MACHINE_IMAGE, ensureImage } from "../../support/engine/image.ts";
import { machineVolumes } from "../../support/engine/machine-container.ts";
import { SYSTEM_PATH, check, run } from "../../support/program/command.ts";

const SOURCES = "test/bench/clients";

export interface Client {
  readonly name: string;
  /** Of its resolver, as the table says it. */
  readonly version: string;
  readonly container: Container;
  readonly command: readonly string[];
}

interface Found {
  readonly addresses: readonly string[];
  readonly error: string | undefined;
  readonly ms: number;
}

/** Compiles them, and starts their containers on a network. */
export async function startClients(engine: Engine, network: string): Promise<Client[]> {
  const folder = join(engine.folder, "clients");
  mkdirSync(folder);
  const at = (name: string): string => join(folder, name);
  await check("gcc", ["-o", at("glibc"), `${SOURCES}/resolve.c`]);
  await check("musl-gcc", ["-static", "-o", at("musl"), `${SOURCES}/resolve.c`]);
  await check("javac", ["-d", folder, `${SOURCES}/Resolve.java`]);
  copyFileSync(`${SOURCES}/resolve.mjs`, at("resolve.mjs"));
  const env = { CGO_ENABLED: "0", GOCACHE: at("go-cache"), GOFLAGS: "-mod=mod" };
  await check("go", ["build", "-o", at("go"), `${SOURCES}/resolve.go`], { env });
  const musl = /Version (\S+)/.exec((await run(muslLoader(), [])).stderr)?.[1] ?? "";
  const java = await run("java", ["-version"]);
  const kinds: readonly (readonly [string, string, readonly string[]])[] = [
    ["glibc", (await check("getconf", ["GNU_LIBC_VERSION"])).trim().replace("glibc ", ""), [at("glibc")]],
    ["musl", musl, [at("musl")]],
    ["Node, dns.lookup", process.versions.node, ["node", at("resolve.mjs"), "lookup"]],
    ["Node, dns.resolve4", `c-ares ${process.versions.ares}`, ["node", at("resolve.mjs"), "resolve4"]],
    ["Java", /version "([^"]+)"/.exec(java.stderr)?.[1] ?? "", ["java", "-cp", folder, "Resolve"]],
    ["Go, static", /go([\d.]+)/.exec(await check("go", ["version"]))?.[1] ?? "", [at("go")]],
  ];
  const image = await ensureImage(engine, MACHINE_IMAGE);
  const node = dirname(dirname(process.execPath));
  // The settings of Java are in a folder beside those of others.
  const java_ = readdirSync("/etc").filter((name) => /^java-\d/.test(name));
  const seen = [...(node.startsWith("/usr") ? [] : [node]), ...java_.map((name) => `/etc/${name}`), folder];
  return await Promise.all(
    kinds.map(async ([name, version, command], index) => {
      const args = machineVolumes(seen);
      const place = { image, networks: [network], args, command: ["sleep", "infinity"] };
      const container = await runContainer(engine, { name: `client${index}`, ...place });
      return { name, version, container, command };
    }),
  );
}

function muslLoader(): string {
  const name = readdirSync("/lib").find((each) => each.startsWith("ld-musl-")) ?? "";
  return `/lib/${name}`;
}

/** One process of a client: what it keeps between lookups it keeps here. */
export class Lookups implements AsyncDisposable {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #lines: AsyncIterator<string>;

  constructor(engine: Engine, { container, command }: Client) {
    const args = ["-H", engine.host, "exec", "--interactive", container.id, ...command];
    this.#child = spawn("docker", args, { env: { ...process.env, PATH: SYSTEM_PATH } });
    this.#child.stderr.pipe(process.stderr);
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }

  async find(name: string): Promise<Found> {
    const beganMs = performance.now();
    this.#child.stdin.write(`${name}\n`);
    const { value, done } = await this.#lines.next();
    const ms = performance.now() - beganMs;
    if (done === true) throw new Error(`the client has ended at ${name}`);
    const [, error] = /^error: (.*)$/.exec(value) ?? [];
    return { addresses: error === undefined ? value.split(" ") : [], error, ms };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.stdin.end();
    await new Promise((resolve) => this.#child.once("close", resolve));
  }
}
