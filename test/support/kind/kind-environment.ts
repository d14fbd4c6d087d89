/**
 * Environment of the tests of KIND nodes on a real engine: an engine with a network named like KIND's, a container
 * "web" on it, an upstream server, and a dns11 whose settings may change while it runs.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import type { ContainerStatus } from "../../../src/api/status.ts";
import { type Container, createNetwork, runContainer } from "../engine/container.ts";
import { dataOf, digByBoth } from "../client/dig.ts";
import { type Dns11, type Dns11Options, type SettingTexts, startDns11 } from "../program/dns11.ts";
import { type Engine, type EngineOptions, startEngine } from "../engine/engine.ts";
import { type KindNode, type KindNodeOptions, runKindNode } from "./kind-node.ts";
import type { NetworkContext } from "../rig/netns.ts";
import { checkIn } from "./pod-host.ts";
import { SharedDns11 } from "../program/shared-dns11.ts";
import { startUpstream, type Upstream } from "../servers/upstream.ts";
import { waitFor } from "../rig/wait.ts";

export const NETWORK = "kind";
export const GATEWAY = "10.77.0.1";
/** Not the loopback of the engine's host: dockerd 20.10 queries that from inside a container. */
const UPSTREAM = "10.53.0.1";

export type NodeReport = NonNullable<ContainerStatus["node"]>;

export interface KindEnvironmentOptions extends EngineOptions {
  /** dns11 starts its keeper, a fifth of the CPU time of a start, for tests of how it ends. */
  readonly withKeeper?: boolean;
}

export async function startKindEnvironment(options: KindEnvironmentOptions = {}): Promise<KindEnvironment> {
  const { withKeeper = false, ...others } = options;
  const engine = await startEngine({ suite: "bookworm", resolvConf: `nameserver ${UPSTREAM}\n`, ...others });
  try {
    const upstream = await startUpstream(engine, { address: UPSTREAM });
    await createNetwork(engine, NETWORK, { subnet: "10.77.0.0/24", args: ["--gateway", GATEWAY] });
    const web = await runContainer(engine, { name: "web", networks: [NETWORK] });
    return new KindEnvironment(engine, upstream, web, withKeeper ? {} : { keeper: "off" });
  } catch (error) {
    await engine[Symbol.asyncDispose]();
    throw error;
  }
}

export class KindEnvironment implements AsyncDisposable {
  readonly engine: Engine;
  readonly upstream: Upstream;
  readonly web: Container;
  readonly #folder = mkdtempSync(join(tmpdir(), "d11-kind-"));
  readonly #shared = new SharedDns11(() => this.engine);
  /** Of each dns11. */
  readonly #always: SettingTexts;
  #files = 0;

  constructor(engine: Engine, upstream: Upstream, web: Container, always: SettingTexts) {
    this.engine = engine;
    this.upstream = upstream;
    this.web = web;
    this.#always = always;
  }

  /** By default without KIND's rewrite. */
  async node(name: string, options: Partial<KindNodeOptions> = {}): Promise<KindNode> {
    return await runKindNode(this.engine, { name, networks: [NETWORK], entrypoint: "none", ...options });
  }

  /** For tests that neither stop dns11 nor need it fresh. Other tests must end it before they create a node. */
  async shared(): Promise<Dns11> {
    return await this.#shared.with(["--kind", "auto"], this.#always);
  }

  /** The same, with these settings of nodes, which it reloads. */
  async sharedWith(kind = "", ...others: readonly string[]): Promise<Dns11> {
    return await this.#shared.under(kindLine(kind), ...others);
  }

  async endShared(): Promise<void> {
    await this.#shared.stop();
  }

  async serve(settings: SettingTexts = {}, options: Dns11Options = {}): Promise<Dns11> {
    this.#shared.assertEnded();
    return await startDns11(this.engine, {
      ...options,
      args: ["--kind", "auto"],
      settings: { ...this.#always, ...settings },
    });
  }

  async serveWith(file: SettingsFile, options: Dns11Options = {}): Promise<Dns11> {
    this.#shared.assertEnded();
    return await startDns11(this.engine, {
      ...options,
      args: [...file.args, ...(options.args ?? [])],
      settings: this.#always,
    });
  }

  settings(kind: string, others = ""): SettingsFile {
    this.#files += 1;
    return new SettingsFile(join(this.#folder, `settings-${this.#files}.yaml`), kind, others);
  }

  /**
   * The answers for "web" from a server, by UDP and by TCP; each is [] without a reply. It retries as any resolver
   * does: a packet lost on a busy machine is not a wrong answer. queryLoop() counts lost ones. Where none is expected,
   * few tries are enough.
   */
  async webFrom(place: NetworkContext, server: string, tries = 30): Promise<string[][]> {
    const replies = await digByBoth(place, server, "web", "+time=1", `+tries=${tries}`);
    return replies.map((reply) => (reply === undefined ? [] : dataOf(reply)));
  }

  /** The expected result of webFrom(). */
  get found(): string[][] {
    const address = this.web.address(NETWORK);
    return [[address], [address]];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#shared[Symbol.asyncDispose]();
    rmSync(this.#folder, { recursive: true });
    await this.upstream[Symbol.asyncDispose]();
    await this.engine[Symbol.asyncDispose]();
  }
}

export const NO_ANSWERS: readonly string[][] = [[], []];

/** Settings file of a dns11, which can reload it. */
export class SettingsFile {
  readonly path: string;
  #reloads = 0;

  constructor(path: string, kind: string, others: string) {
    this.path = path;
    this.write(kind, others);
  }

  get args(): string[] {
    return ["--config", this.path];
  }

  /** Writes the content of the map `kind`, adding `nodes` if it is missing. */
  write(kind: string, others = ""): void {
    writeFileSync(this.path, `version: 1\n${kindLine(kind)}\n${others}`);
  }

  async reload(instance: Dns11, kind: string): Promise<void> {
    this.write(kind);
    this.#reloads += 1;
    const count = this.#reloads;
    instance.kill("SIGHUP");
    await waitFor("the settings to be read again", () => {
      const done = instance.log.split("settings reloaded").length - 1;
      return done >= count ? true : undefined;
    });
  }
}

function kindLine(kind: string): string {
  const nodes = /\bnodes:/.test(kind) ? "" : `nodes: [auto]${kind === "" ? "" : ", "}`;
  return `kind: { ${nodes}${kind} }`;
}

/** Waits until a node's report satisfies the predicate. */
export async function waitForNode(
  instance: Dns11,
  name: string,
  isWanted: (report: NodeReport) => boolean,
): Promise<NodeReport> {
  let last: ContainerStatus | undefined;
  const check = async (): Promise<NodeReport | undefined> => {
    last = await instance.container(name);
    return last?.node !== undefined && isWanted(last.node) ? last.node : undefined;
  };
  try {
    return await waitFor(`the report of ${name}`, check);
  } catch (error) {
    throw new Error(`Last report: ${JSON.stringify(last)}; log of dns11:\n${instance.log}`, { cause: error });
  }
}

export async function waitForWorkingNode(instance: Dns11, name: string): Promise<NodeReport> {
  return await waitForNode(instance, name, ({ state }) => state === "working");
}

/** All rules of a namespace without counters, as nft lists them: our tables of both address families, and the others. */
export async function rulesByOwner(netnsPath: string): Promise<{ readonly others: string; readonly ours: string[] }> {
  const listed = await checkIn(netnsPath, "nft", ["--stateless", "list", "ruleset"]);
  const tables = listed.split(/^(?=table )/m);
  const isOurs = (table: string): boolean => /^table ip6? dns11 /.test(table);
  return { others: tables.filter((table) => !isOurs(table)).join(""), ours: tables.filter(isOurs) };
}

export async function rulesOfOthers(netnsPath: string): Promise<string> {
  return (await rulesByOwner(netnsPath)).others;
}

/** The view of both iptables variants, in case nft shows less than there is. */
export async function savedRules(netnsPath: string): Promise<string> {
  const programs = ["iptables-nft-save", "iptables-legacy-save"];
  const texts = await Promise.all(programs.map(async (program) => await checkIn(netnsPath, program, [])));
  return texts.join("").replaceAll(/^#.*\n|\[\d+:\d+\]/gm, "");
}

export async function ownTables(netnsPath: string): Promise<string[]> {
  return (await rulesByOwner(netnsPath)).ours;
}

/** route_localnet of every interface; sysctl would read all of its thousand settings for a pattern. */
export async function routeLocalnet(netnsPath: string): Promise<Record<string, string>> {
  const script = "cd /proc/sys/net/ipv4/conf && grep . */route_localnet";
  const text = await checkIn(netnsPath, "sh", ["-c", script]);
  return Object.fromEntries(
    [...text.matchAll(/^(.*)\/route_localnet:(\d+)$/gm)].map(([, name = "", value = ""]) => [name, value]),
  );
}

/** Addresses on lo other than 127.0.0.1 and ::1. */
export async function addressesOnLo(netnsPath: string): Promise<string[]> {
  const text = await checkIn(netnsPath, "ip", ["-oneline", "address", "show", "dev", "lo"]);
  const found = [...text.matchAll(/inet6? (\S+)\//g)].map(([, address = ""]) => address);
  return found.filter((address) => address !== "127.0.0.1" && address !== "::1");
}
