/**
 * A machine with containers, and another one on its LAN that asks at the machine's addresses, as the tests of both use them.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import type { ListenAddressReport } from "../../../src/api/listener.ts";
import { dig } from "../../support/client/dig.ts";
import { createNetwork, runContainer } from "../../support/engine/container.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { check } from "../../support/program/command.ts";
import { type Dns11, dns11, startDns11 } from "../../support/program/dns11.ts";
import { makeFolder } from "../../support/rig/folder.ts";
import { Netns } from "../../support/rig/netns.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { connectByWire } from "../../support/rig/wire.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";

export const HOST = "192.168.77.10";
export const HOST6 = "fd77::10";
export const AT = `@${HOST}`;
export const AT6 = `@${HOST6}`;
const PROJECT = "com.docker.compose.project";
const SERVICE = "com.docker.compose.service";
/** What is set about addresses, if nothing else is said. */
export const LAN = [
  "listen:",
  "  lan:",
  `    address: [${HOST}, "${HOST6}"]`,
  '    allow: [192.168.77.0/25, "fd77::/64"]',
];
const NAMES = [
  "zone: cluster.local",
  "records:",
  "  printer.lan: 192.168.77.99",
  `  many.lan: [${Array.from({ length: 60 }, (_, index) => `10.9.8.${index + 1}`).join(", ")}]`,
];

export class LanMachines implements AsyncDisposable {
  readonly engine: Engine;
  /** The other machine. */
  readonly friend: Netns;
  readonly config = join(makeFolder("listen"), "dns11.yaml");
  upstream!: Upstream;
  instance!: Dns11;
  #wire!: AsyncDisposable;

  private constructor(engine: Engine, friend: Netns) {
    this.engine = engine;
    this.friend = friend;
  }

  static async start(): Promise<LanMachines> {
    const lan = new LanMachines(await startEngine(), await Netns.create());
    const { engine, friend } = lan;
    lan.upstream = await startUpstream(engine);
    lan.#wire = await connectByWire(
      new Map([
        [engine.id, `${HOST}/24`],
        [friend.name, "192.168.77.20/24"],
      ]),
    );
    await lan.address("add", `${HOST6}/64`);
    await check("ip", ["-n", friend.name, "address", "add", "fd77::20/64", "dev", "wire0", "nodad"]);
    await createNetwork(engine, "n1");
    const compose = (service: string): Readonly<Record<string, string>> => ({ [PROJECT]: "shop", [SERVICE]: service });
    const published = { ...compose("web"), "io.dns11.ports": "http=80" };
    await runContainer(engine, { name: "web", networks: ["n1"], labels: published, args: ["--publish", "8080:80"] });
    await runContainer(engine, { name: "db", networks: ["n1"], labels: compose("db") });
    lan.#write(LAN);
    lan.instance = await startDns11(engine, { args: ["--config", lan.config] });
    await lan.serving(2);
    return lan;
  }

  #write(listen: readonly string[]): void {
    writeFileSync(this.config, ["version: 1", ...NAMES, ...listen, ""].join("\n"), { mode: 0o600 });
  }

  /** With other lines of settings about addresses, or none. */
  async reload(listen: readonly string[] = LAN): Promise<void> {
    this.#write(listen);
    await this.instance.reload();
  }

  /** Of the machine with containers. */
  async address(change: "add" | "del", text: string): Promise<void> {
    const nodad = text.includes(":") ? ["nodad"] : [];
    await check("ip", ["-n", this.engine.id, "address", change, text, "dev", "wire0", ...nodad]);
  }

  /** From the other machine. */
  async asks(...args: readonly string[]): ReturnType<typeof dig> {
    return await dig(this.friend, ...args);
  }

  async states(): Promise<readonly ListenAddressReport[]> {
    const { listen } = await this.instance.status();
    return (listen?.entries ?? []).flatMap(({ addresses }) => addresses);
  }

  async until(what: string, isSo: (all: readonly ListenAddressReport[]) => boolean): Promise<void> {
    await waitFor(what, async () => (isSo(await this.states()) ? true : undefined));
  }

  async serving(count: number): Promise<void> {
    await this.until(`${count} addresses`, (all) => all.filter(({ state }) => state === "serving").length === count);
  }

  async command(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await dns11([
      ...args,
      "-H",
      this.engine.host,
      "--state-dir",
      this.instance.stateDir,
    ]);
    assert.equal(code, 0, stderr);
    return stdout;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.instance[Symbol.asyncDispose]();
    await this.#wire[Symbol.asyncDispose]();
    await this.friend[Symbol.asyncDispose]();
    await this.upstream[Symbol.asyncDispose]();
    await this.engine[Symbol.asyncDispose]();
  }
}
