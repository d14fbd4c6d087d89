// Case: one forwarding case: a container that dns11 serves, with its own nameservers on its loopback that play a scenario.
// They are not shared, because dns11 keeps state per server: its cached replies and its health.

import assert from "node:assert/strict";
import { after, before } from "node:test";

import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { type DigReply, dig } from "../../support/client/dig.ts";
import { type Dns11, startDns11 } from "../../support/program/dns11.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { type ScriptedServers, startScripted } from "../../support/scripted/scripted.ts";
import { type StormReport, storm } from "../../support/scripted/storm.ts";

export type CaseOptions = {
  readonly scenario: string;
  // One server at each; the first one is server 1 of the scenario.
  readonly addresses?: readonly string[];
  // The servers that are set with --dns; default: all.
  readonly dns?: readonly string[];
  readonly network?: string;
};

export const LOOPBACKS = ["127.1.0.1", "127.1.0.2", "127.1.0.3"] as const;

// What the tests of a file share.
export class Forwarding {
  #engine: Engine | undefined;
  #dns11: Dns11 | undefined;

  // Started before the first test of the file, and ended after the last one.
  constructor() {
    before(async () => {
      this.#engine = await startEngine();
      await createNetwork(this.#engine, "n1");
      this.#dns11 = await startDns11(this.#engine);
    });
    after(async () => {
      await this.#dns11?.[Symbol.asyncDispose]();
      await this.#engine?.[Symbol.asyncDispose]();
    });
  }

  get engine(): Engine {
    return this.#engine ?? assert.fail("before the first test");
  }

  get dns11(): Dns11 {
    return this.#dns11 ?? assert.fail("before the first test");
  }

  async withServers(count: number, scenario: string): Promise<Case> {
    return await startCase(this.engine, this.dns11, { scenario, addresses: LOOPBACKS.slice(0, count) });
  }
}

export async function startCase(engine: Engine, dns11: Dns11, options: CaseOptions): Promise<Case> {
  const { scenario, addresses = LOOPBACKS.slice(0, 1), dns = addresses, network = "n1" } = options;
  const container = await runContainer(engine, { networks: [network], dns });
  const servers = await startScripted(container, scenario, { addresses });
  await dns11.waitFor(container.name, "attached");
  return new Case(container, servers);
}

export class Case implements AsyncDisposable {
  readonly container: Container;
  readonly servers: ScriptedServers;

  constructor(container: Container, servers: ScriptedServers) {
    this.container = container;
    this.servers = servers;
  }

  async dig(...args: string[]): Promise<DigReply> {
    return await dig(this.container, ...args);
  }

  async storm(suffix: string, count: number, atOnce: number): Promise<StormReport> {
    return await storm(this.container, { suffix, load: { count, atOnce } });
  }

  // How many queries for this name the servers received.
  async timesQueried(name: string): Promise<number> {
    return (await this.servers.queriesFor(name)).length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.container[Symbol.asyncDispose]();
    await this.servers[Symbol.asyncDispose]();
  }
}
