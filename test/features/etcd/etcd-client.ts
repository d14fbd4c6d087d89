/**
 * A container whose names are in etcd, as the tests of etcd itself use it: dns11 serves it, and reads its settings from a file.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import type { EtcdReport } from "../../../src/api/etcd.ts";
import { dataOf, dig } from "../../support/client/dig.ts";
import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { check } from "../../support/program/command.ts";
import { type Dns11, dns11, startDns11 } from "../../support/program/dns11.ts";
import { makeFolder } from "../../support/rig/folder.ts";
import { inNetns } from "../../support/rig/netns.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";

export class EtcdClient implements AsyncDisposable {
  readonly engine: Engine;
  readonly upstream: Upstream;
  readonly folder = makeFolder("etcd-test");
  client!: Container;
  instance!: Dns11;
  readonly #config = join(this.folder, "dns11.yaml");

  private constructor(engine: Engine, upstream: Upstream) {
    this.engine = engine;
    this.upstream = upstream;
  }

  /** `settings`: for the etcd that is started on the new engine. */
  static async start(settings: (engine: Engine, folder: string) => Promise<object>): Promise<EtcdClient> {
    const engine = await startEngine({ resolvConf: "nameserver 127.0.0.1\n" });
    const rig = new EtcdClient(engine, await startUpstream(engine));
    await createNetwork(engine, "one", { subnet: "172.31.0.0/16" });
    rig.client = await runContainer(engine, { name: "client", networks: ["one"] });
    rig.#write(await settings(engine, rig.folder));
    rig.instance = await startDns11(engine, {
      args: ["--config", rig.#config],
      prefix: inNetns(engine.netnsPath, "env"),
      env: { DNS11_KEEPER: "off" },
    });
    return rig;
  }

  #write(etcd: object): void {
    const records = { "declared.shop.test": "10.2.0.1" };
    const zones = ["shop.test", "0.1.10.in-addr.arpa"];
    writeFileSync(this.#config, JSON.stringify({ version: 1, records, etcd: { zones, "max-stale": "1h", ...etcd } }));
  }

  /** With other settings for etcd. */
  async reload(etcd: object): Promise<void> {
    this.#write(etcd);
    await this.instance.reload();
  }

  async report(): Promise<EtcdReport> {
    const { etcd } = await this.instance.status();
    assert.ok(etcd, "etcd is configured");
    return etcd;
  }

  async until(what: string, isSo: (state: EtcdReport) => boolean): Promise<EtcdReport> {
    let last: EtcdReport | undefined;
    try {
      return await waitFor(what, async () => {
        last = await this.report();
        return isSo(last) ? last : undefined;
      });
    } catch (error) {
      throw new Error(`last report: ${JSON.stringify(last)}; ${this.instance.log.slice(-2000)}`, { cause: error });
    }
  }

  async answer(name: string, type = "A"): Promise<readonly string[]> {
    const reply = await dig(this.client, name, type);
    return [reply.status, ...dataOf(reply).toSorted()];
  }

  async resolves(name: string, ...expected: readonly string[]): Promise<void> {
    await waitFor(`${name} to be ${expected.join(" ")}`, async () =>
      (await this.answer(name)).join(" ") === expected.join(" ") ? true : undefined,
    );
  }

  /** What a command of dns11 prints. */
  async command(first: string, ...rest: readonly string[]): Promise<string> {
    const place = ["-H", this.engine.host, "--state-dir", this.instance.stateDir];
    const { stdout, stderr } = await dns11([first, ...place, ...rest]);
    return stdout + stderr;
  }

  /** Drops what goes to a member's address, and nothing else. */
  async cutOff(address: string): Promise<void> {
    await this.#nft("add table ip cut; add chain ip cut out { type filter hook output priority 0; }");
    await this.#nft(`add rule ip cut out ip daddr ${address} drop`);
  }

  async reconnect(): Promise<void> {
    await this.#nft("delete table ip cut");
  }

  async #nft(rules: string): Promise<void> {
    const [first = "", ...rest] = inNetns(this.engine.netnsPath, "nft", [rules]);
    await check(first, rest);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.instance[Symbol.asyncDispose]();
    await this.upstream[Symbol.asyncDispose]();
    await this.engine[Symbol.asyncDispose]();
  }
}
