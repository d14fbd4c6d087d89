// Rig: the setup of the hostile tests, one engine with two networks. On one are the attackers, containers without capabilities
// that run the attack programs. On the other are two victims: one is served by dns11; the other uses Docker's resolver and sends
// the same queries, so that the load of an attack on the host is not blamed on dns11.

import assert from "node:assert/strict";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { LIMITS } from "../../src/base/limits.ts";
import { stdoutOf } from "../support/program/command.ts";
import { type Container, type ContainerOptions, createNetwork, runContainer } from "../support/engine/container.ts";
import { type Dns11, startDns11 } from "../support/program/dns11.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { type InsideNode, insideNode } from "../support/engine/inside-node.ts";
import { pause, waitFor } from "../support/rig/wait.ts";
import type { AttackProgram } from "./inside/attacker-main.ts";
import { HostServer } from "./host-server.ts";
import { type Period, Victim } from "./victim.ts";

export type Attack = {
  readonly title: string;
  // Starts before the first attack and runs beside all others.
  readonly begin?: (rig: Rig) => void;
  // Runs the attack. Throws if the attack could not run, or if its specific target was hit.
  readonly act: (rig: Rig) => Promise<void>;
};

const NO_RIGHTS: readonly string[] = ["--cap-drop=ALL", "--security-opt=no-new-privileges"];
const HOSTS = "127.0.0.1";
const ATTACKERS = "10.77.0.0/24";
/** The servers of the attackers' zones, to which the host's server forwards. */
const ZONES = { "evil.test": "10.77.0.66", "loop.test": "10.77.0.67" };
/** For /proc/PID/clear_refs: resets the peak resident size. */
const FORGET_PEAK = "5";
const PROGRAM_MS_MAX = 150_000;
const SEEN_MS_LEAST = 1_000;
const SENT_LEAST = 15;

const MIB = 1024 * 1024;
const CACHE_KIB = 512;
/**
 * How much more memory dns11 may use than at rest: the cache; the shares of two attackers, counted twice because data is copied;
 * and the heap, which is collected only when it has grown by half, with the buffers that wait for that.
 */
const MEMORY_BYTES = CACHE_KIB * 1024 + 2 * 2 * (LIMITS.forwardBytes.each + LIMITS.streamBytes.each) + 96 * MIB;
/** The attackers' shares, and the victim's own server. */
const DESCRIPTORS = 3 * (LIMITS.clientStreams.each + LIMITS.upstreamStreams.each + LIMITS.upstreamSocketsOwn.each) + 32;
/** Sockets to the host's server are replaced now and then; the old ones stay open for late replies. */
const DESCRIPTORS_COMING_AND_GOING = 3 * LIMITS.upstreamSockets;
/** Log lines that one attack may cause: the allowance of a few subjects, far below one line per packet. */
const LOG_LINES = 60;
/**
 * Queries that may be lost beyond what Docker's resolver loses, and per thousand: while all CPUs are busy, a datagram may find
 * a socket buffer full. An attack that stops the others for a second loses thirty.
 */
const LOST = 5;
const LOST_OF_THOUSAND = 2;

type Parts = {
  readonly engine: Engine;
  readonly server: HostServer;
  readonly node: InsideNode;
  readonly config: string;
  readonly web: Container;
  readonly served: Container;
  readonly control: Container;
};

export class Rig implements AsyncDisposable {
  readonly #parts: Parts;
  readonly #victims: readonly Victim[];
  readonly #attackers = new Map<string, Container>();
  readonly #begun = new Map<AttackProgram, Promise<Record<string, number>>>();
  #instance: Dns11;
  #restingBytes = 0;
  #restingDescriptors = 0;

  private constructor(parts: Parts, instance: Dns11) {
    this.#parts = parts;
    this.#instance = instance;
    const web = parts.web.address("victims");
    this.#victims = [new Victim(parts.served, web, 0), new Victim(parts.control, web, 500_000)];
  }

  static async start(): Promise<Rig> {
    const engine = await startEngine({ suite: "bookworm", resolvConf: `nameserver ${HOSTS}\n` });
    try {
      return await Rig.#in(engine);
    } catch (error) {
      await engine[Symbol.asyncDispose]();
      throw error;
    }
  }

  static async #in(engine: Engine): Promise<Rig> {
    const node = await insideNode(engine);
    await createNetwork(engine, "attackers", { subnet: ATTACKERS });
    await createNetwork(engine, "victims");
    const server = await HostServer.at(engine, HOSTS, ZONES);
    const web = await runContainer(engine, { name: "web", networks: ["victims"] });
    const served = await runContainer(engine, { name: "served", networks: ["victims"] });
    const labels = { "io.dns11.enable": "false" };
    const control = await runContainer(engine, { name: "control", networks: ["victims"], labels });
    const config = join(engine.folder, "dns11.yaml");
    writeFileSync(config, `version: 1\ncache:\n  size: ${CACHE_KIB}KiB\n`);
    const instance = await startServing(engine, config);
    const rig = new Rig({ engine, server, node, config, web, served, control }, instance);
    try {
      await rig.#settle();
      return rig;
    } catch (error) {
      await rig[Symbol.asyncDispose]();
      throw error;
    }
  }

  get engine(): Engine {
    return this.#parts.engine;
  }

  get web(): Container {
    return this.#parts.web;
  }

  get served(): Container {
    return this.#parts.served;
  }

  get instance(): Dns11 {
    return this.#instance;
  }

  // `plain` and `looper` use the host's server, and serve a zone; `chooser` uses its own server; `admin` may change the rules of
  // its namespace.
  get plain(): Container {
    return this.#attacker("plain");
  }

  get looper(): Container {
    return this.#attacker("looper");
  }

  get chooser(): Container {
    return this.#attacker("chooser");
  }

  get admin(): Container {
    return this.#attacker("admin");
  }

  // Docker arguments to run the attack programs in a container.
  get attackerArgs(): readonly string[] {
    return [...NO_RIGHTS, ...this.node.args];
  }

  get node(): InsideNode {
    return this.#parts.node;
  }

  async addAttacker(options: ContainerOptions & { readonly name: string }): Promise<Container> {
    const args = [...this.attackerArgs, ...(options.args ?? [])];
    const container = await runContainer(this.engine, { networks: ["attackers"], ...options, args });
    this.#attackers.set(options.name, container);
    await this.#instance.waitFor(options.name, "attached");
    return container;
  }

  // Runs an attack program and returns its report.
  async run(
    container: Container,
    program: AttackProgram,
    ...amounts: readonly number[]
  ): Promise<Record<string, number>> {
    const [command = "", ...args] = this.node.command("hostile/inside/attacker-main.js");
    const result = await container.exec(command, [...args, program, ...amounts.map(String)], {
      timeoutMs: PROGRAM_MS_MAX,
    });
    return JSON.parse(stdoutOf(result, program)) as Record<string, number>;
  }

  // Starts a long attack in the background; ended() returns its report.
  begin(container: Container, program: AttackProgram, ...amounts: readonly number[]): void {
    const report = this.run(container, program, ...amounts);
    // ended() awaits it.
    report.catch(() => undefined);
    this.#begun.set(program, report);
  }

  async ended(program: AttackProgram): Promise<Record<string, number>> {
    return (await this.#begun.get(program)) ?? {};
  }

  // Runs a host program in the namespace of `admin`, with NET_ADMIN only.
  async administer(command: string, args: readonly string[], input?: string): Promise<string> {
    const rights = ["--bounding-set=-all,+net_admin", "--no-new-privs", command, ...args];
    return stdoutOf(await this.admin.enter("setpriv", rights, { input, timeoutMs: PROGRAM_MS_MAX }), command);
  }

  // Runs an attack and returns a summary. Throws if it harmed anything but the attacker.
  async under({ act }: Attack): Promise<string> {
    // If an earlier attack ended dns11, start it again so that this one is judged by itself.
    if (!this.#instance.isRunning) await this.#startAgain();
    const { pid, log } = this.#instance;
    await this.#endPeriods();
    writeFileSync(`/proc/${pid}/clear_refs`, FORGET_PEAK);
    const [acted] = await Promise.allSettled([act(this), pause(SEEN_MS_LEAST)]);
    assert.ok(this.#instance.isRunning, `dns11 ended: ${tailOf(this.#instance.log)}`);
    const peak = memoryOf(pid, "VmHWM");
    const descriptors = descriptorsOf(pid);
    const [served, control] = await this.#endPeriods();
    const lines = this.#instance.log.slice(log.length).split("\n").length - 1;
    const report = [
      `sent ${served.sent}, lost ${served.lost} (control to Docker: ${control.lost})`,
      `${mib(peak)} MiB (at rest ${mib(this.#restingBytes)})`,
      `${descriptors} descriptors, ${lines} lines`,
    ].join("; ");
    assert.equal(served.wrong, 0, `${report}: ${served.examples.join("; ")}`);
    assert.ok(served.lost <= control.lost + tolerated(served), `${report}: ${served.examples.join("; ")}`);
    assert.ok(served.sent >= SENT_LEAST, report);
    assert.equal((await this.#instance.status()).pid, pid);
    assert.ok(peak <= this.#restingBytes + MEMORY_BYTES, report);
    assert.ok(descriptors <= this.#restingDescriptors + DESCRIPTORS, report);
    assert.ok(lines <= LOG_LINES, `${report}: ${tailOf(this.#instance.log)}`);
    if (acted?.status === "rejected") throw acted.reason;
    return report;
  }

  // Removes the attackers and waits until dns11 has released their resources.
  async endAttackers(): Promise<void> {
    for (const attacker of this.#attackers.values()) await attacker.remove();
    this.#attackers.clear();
    const most = this.#restingDescriptors + DESCRIPTORS_COMING_AND_GOING;
    let last = 0;
    const check = (): true | undefined => {
      last = descriptorsOf(this.#instance.pid);
      return last <= most ? true : undefined;
    };
    try {
      await waitFor("descriptors to be what they were", check, { everyMs: 100 });
    } catch (error) {
      throw new Error(`${last} descriptors; at rest ${this.#restingDescriptors}`, { cause: error });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const victim of this.#victims) await victim[Symbol.asyncDispose]();
    await this.#instance[Symbol.asyncDispose]();
    await this.#parts.server[Symbol.asyncDispose]();
    await this.engine[Symbol.asyncDispose]();
  }

  #attacker(name: string): Container {
    const found = this.#attackers.get(name);
    if (found === undefined) throw new Error(`no attacker ${name}`);
    return found;
  }

  async #endPeriods(): Promise<[Period, Period]> {
    const [served, control] = await Promise.all(this.#victims.map(async (victim) => await victim.period()));
    if (served === undefined || control === undefined) throw new Error("there are two victims");
    return [served, control];
  }

  async #startAgain(): Promise<void> {
    await this.#instance[Symbol.asyncDispose]();
    this.#instance = await startServing(this.engine, this.#parts.config);
  }

  // Measures the resting state: both victims get all answers, and there are no attackers yet.
  async #settle(): Promise<void> {
    const check = async (): Promise<true | undefined> => {
      await pause(SEEN_MS_LEAST);
      const all = await this.#endPeriods();
      return all.every(({ lost, wrong, sent }) => lost + wrong === 0 && sent > SENT_LEAST) ? true : undefined;
    };
    await waitFor("the victims to get their answers", check);
    await this.#instance.waitForKernel();
    this.#restingBytes = memoryOf(this.#instance.pid, "VmRSS");
    this.#restingDescriptors = descriptorsOf(this.#instance.pid);
    await this.addAttacker({ name: "plain", networks: [{ name: "attackers", ip: ZONES["evil.test"] }] });
    await this.addAttacker({ name: "looper", networks: [{ name: "attackers", ip: ZONES["loop.test"] }] });
    await this.addAttacker({ name: "chooser", dns: [HOSTS] });
    await this.addAttacker({ name: "admin", args: ["--cap-add=NET_ADMIN"] });
  }
}

async function startServing(engine: Engine, config: string): Promise<Dns11> {
  const args = ["--log-level", "info", "--config", config, "--metrics-addr", "127.0.0.1:0"];
  const program = process.env["DNS11_PROGRAM"];
  return await startDns11(engine, { args, ...(program !== undefined && { program: [process.execPath, program] }) });
}

function memoryOf(pid: number, field: string): number {
  const [, kilobytes] =
    new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kilobytes) * 1024;
}

function descriptorsOf(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

function tolerated({ sent }: Period): number {
  return LOST + Math.ceil((sent * LOST_OF_THOUSAND) / 1000);
}

function mib(bytes: number): number {
  return Math.round(bytes / MIB);
}

function tailOf(log: string): string {
  return log.split("\n").slice(-20).join("\n");
}
