/**
 * HostClients: programs of a test's host that resolve names, each in its own way: glibc, musl, static Go and Node. They
 * have the machine's files, except for the host's resolv.conf.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import type { Engine } from "../engine/engine.ts";
import { check, run, stdoutOf } from "../program/command.ts";
import { inNetns } from "../rig/netns.ts";

/** A program in a mount namespace of its own, in which $1 is the resolv.conf. */
const WITH_RESOLV_CONF = 'mount --bind "$1" /etc/resolv.conf && shift && exec "$@"';
const NODE = "require('dns').resolve4(process.argv[1],(e,a)=>console.log(e?e.code:a.join('\\n')))";

const OUTSIDE = "192.0.2.0/24";

type Lookup = (name: string) => Promise<string>;

export class HostClients {
  readonly #engine: Engine;
  readonly #resolvConf: string;
  /** Each prints addresses among other words, or none. */
  readonly #all: ReadonlyMap<string, Lookup>;
  #musl: Promise<string> | undefined;

  private constructor(engine: Engine) {
    this.#engine = engine;
    this.#resolvConf = join(engine.folder, "clients-resolv.conf");
    this.#all = new Map<string, Lookup>([
      ["glibc", async (name) => await this.#output(["getent", "ahosts", name])],
      ["musl", async (name) => await this.#output([await (this.#musl ??= this.#compile()), name])],
      // The docker command itself asks a registry for a manifest. Its error has the address of port 1.
      [
        "static Go",
        async (name) => await this.#output(["docker", "manifest", "inspect", "--insecure", `${name}:1/a:b`]),
      ],
      ["Node", async (name) => await this.#output([process.execPath, "-e", NODE, name])],
    ]);
  }

  static async prepare(engine: Engine): Promise<HostClients> {
    // Go reports the first address that it tried: the one that has a route. Outside names have these addresses.
    const [command = "", ...route] = inNetns(engine.netnsPath, "ip", [
      "route",
      "replace",
      "local",
      OUTSIDE,
      "dev",
      "lo",
    ]);
    await check(command, route);
    return new HostClients(engine);
  }

  /** The IPv4 addresses of a name by each program. */
  async lookup(name: string): Promise<Record<string, readonly string[]>> {
    const host = ["--target", String(this.#engine.hostPid), "--mount", "--", "cat", "/etc/resolv.conf"];
    writeFileSync(this.#resolvConf, stdoutOf(await run("nsenter", host), "resolv.conf"));
    const entries = [...this.#all].map(async ([program, lookup]) => {
      // An address with port 53 is that of a server.
      const found = (await lookup(name)).match(/\b\d+\.\d+\.\d+\.\d+\b(?!:53)/g) ?? [];
      return [program, [...new Set(found)]] as const;
    });
    return Object.fromEntries(await Promise.all(entries));
  }

  /** What `lookup` returns where every program finds these addresses. */
  all(...addresses: string[]): Record<string, readonly string[]> {
    return Object.fromEntries([...this.#all.keys()].map((program) => [program, addresses]));
  }

  /** Returns the program's path. */
  async #compile(): Promise<string> {
    const path = join(this.#engine.folder, "lookup");
    await check("musl-gcc", ["-static", "-o", path, "test/support/client/lookup.c"]);
    return path;
  }

  async #output(words: readonly string[]): Promise<string> {
    const { folder, netnsPath } = this.#engine;
    const script = ["--mount", "sh", "-c", WITH_RESOLV_CONF, "sh", this.#resolvConf, ...words];
    const [command = "", ...args] = inNetns(netnsPath, "unshare", script);
    const { stdout, stderr } = await run(command, args, { env: { GODEBUG: "netdns=go", DOCKER_CONFIG: folder } });
    return `${stdout}\n${stderr}`;
  }
}
