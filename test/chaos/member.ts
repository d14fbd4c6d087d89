// Container of a run: the changes to it, one at a time, and the prober in its namespace. Its addresses are fixed, so
// that correct answers are known.

import { existsSync, readFileSync, readdirSync, readlinkSync, statSync } from "node:fs";

import { ensureImage } from "../support/engine/image.ts";
import { run } from "../support/program/command.ts";
import type { Engine } from "../support/engine/engine.ts";
import { inNetns } from "../support/rig/netns.ts";
import { pause, waitFor } from "../support/rig/wait.ts";
import { Prober, type ProberReport, type ProberOptions, type Stall, type ProbeResult } from "./prober.ts";
import type { AddressSpan, Recording } from "./judge.ts";
import { monotonicMs } from "./monotonic.ts";
import { Mutex } from "./mutex.ts";
import type { ProbedContainer, World } from "./world.ts";

// Both networks by name.
export const SUBNETS = { n1: "10.88.1.0/24", n2: "10.88.2.0/24" } as const;
export type NetworkName = keyof typeof SUBNETS;

// Docker commands fail while dockerd or containerd is down; they are retried until it is up again.
const RETRY_MS = 300;
const WAIT_TIMEOUT_MS = 120_000;
// An interrupted restart may leave a container that dockerd cannot start; then it is re-created.
const RESTART_MS = 12_000;
const DOCKER_MS = 60_000;
const FIRST_HOST = 10;
const RESOLVER_MS = 3_000;
// 127.0.0.11 as in /proc/net/udp.
const RESOLVER_HEX = "0B00007F";

export type MemberOptions = {
  readonly engine: Engine;
  readonly world: World;
  readonly index: number;
  readonly prober: Omit<ProberOptions, "name">;
};

export class Member implements ProbedContainer {
  readonly name: string;
  readonly index: number;
  unsteady: string | undefined = "it had not been started yet";
  bornMs = 0;
  hasDockerResolver = true;
  hasDockerRules = true;
  servedInLife: number | undefined;
  // Device and inode of its network namespace, as in dns11's status.
  namespace = "";
  readonly load = new Map<string, number>();
  readonly #engine: Engine;
  readonly #world: World;
  readonly #options: ProberOptions;
  readonly #probes: ProbeResult[] = [];
  readonly #stalls: Stall[] = [];
  readonly #addresses: AddressSpan[] = [];
  #pid = 0;
  #prober: Prober | undefined;
  readonly #turn = new Mutex();

  constructor({ engine, world, index, prober }: MemberOptions) {
    this.index = index;
    this.name = `c${index}`;
    this.#engine = engine;
    this.#world = world;
    this.#options = { ...prober, name: this.name };
    this.#addresses.push({ address: this.address("n1"), fromMs: 0, toMs: Infinity });
    world.add(this);
  }

  address(network: NetworkName): string {
    return SUBNETS[network].replace("0/24", String(FIRST_HOST + this.index));
  }

  get netnsPath(): string {
    return `/proc/${this.#pid}/ns/net`;
  }

  record(): Recording {
    return {
      container: this.name,
      probes: this.#probes,
      stalls: this.#stalls,
      answerSpans: this.#world.answerSpansOf(this),
      addresses: this.#addresses,
    };
  }

  // Changes run one at a time.
  async exclusively<T>(work: () => Promise<T>): Promise<T> {
    return await this.#turn.exclusively(work);
  }

  async create(): Promise<void> {
    await this.#withNewNamespace("it was being created", async () => await this.#run());
  }

  async restart(why: string): Promise<void> {
    await this.#withNewNamespace(why, async () => {
      const hasRestarted = await this.#docker(RESTART_MS, "restart", "--time", "0", this.name).then(
        () => true,
        () => false,
      );
      if (!hasRestarted) await this.#run();
    });
  }

  async replace(): Promise<void> {
    await this.#withNewNamespace("it was being replaced", async () => await this.#run());
  }

  // Connects it to a second network for a while, probing all the time.
  async visit(network: NetworkName, forMs: number): Promise<void> {
    const span: AddressSpan = { address: this.address(network), fromMs: monotonicMs(), toMs: Infinity };
    this.#addresses.push(span);
    try {
      await this.#docker(WAIT_TIMEOUT_MS, "network", "connect", "--ip", span.address, network, this.name);
      await pause(forMs);
    } finally {
      // It may be disconnected already, or was never connected.
      await this.#until(`${this.name} to leave ${network}`, async () => {
        const error = await this.#dockerError("network", "disconnect", "--force", network, this.name);
        return (await this.#inspect()).networks.includes(network) ? (error ?? "it is still connected") : undefined;
      });
      span.toMs = monotonicMs();
    }
  }

  // Runs a program of the machine in its network namespace.
  async enter(command: string, args: readonly string[]): Promise<string> {
    const [first = "", ...rest] = inNetns(this.netnsPath, command, args);
    const { stdout, stderr } = await run(first, rest, { timeoutMs: DOCKER_MS });
    return stdout + stderr;
  }

  // Checks after a start of dockerd whether it has a resolver for this container. conntrack keeps redirecting existing
  // flows outside dns11's zone to the old dockerd's port, where they are refused as long as the client keeps its
  // socket, with and without dns11. They prove nothing, so their entries are deleted and the reused socket is replaced.
  async checkDockerResolver(): Promise<void> {
    const check = (): true | undefined => (this.#hasSocketOf(this.#engine.pid) ? true : undefined);
    const found = await waitFor("Docker's resolver", check, { timeoutMs: RESOLVER_MS }).catch(() => undefined);
    this.hasDockerResolver = found === true;
    await this.enter("conntrack", ["--delete", "--zone", "0", "--proto", "udp"]);
    this.#prober?.renewSocket();
    this.#world.changed();
  }

  setServed(life: number): void {
    if (this.servedInLife === life) return;
    this.servedInLife = life;
    this.#world.changed();
  }

  setDockerRules(areThere: boolean): void {
    this.hasDockerRules = areThere;
    this.#world.changed();
  }

  async end(why: string): Promise<void> {
    this.unsteady = why;
    this.#world.changed();
    const prober = this.#prober;
    this.#prober = undefined;
    await prober?.end();
  }

  // The prober stops with the old namespace and starts in the new one.
  async #withNewNamespace(why: string, change: () => Promise<void>): Promise<void> {
    await this.end(why);
    this.bornMs = monotonicMs();
    try {
      await change();
      await this.#until(`${this.name} to run`, async () => {
        const { pid } = await this.#inspect();
        this.#pid = pid;
        return pid === 0 ? await this.#dockerError("start", this.name) : undefined;
      });
    } catch (error) {
      this.unsteady = "the engine could not restart it";
      this.#world.changed();
      throw error;
    }
    const { dev, ino } = statSync(this.netnsPath);
    this.namespace = `${dev}:${ino}`;
    this.servedInLife = undefined;
    this.hasDockerRules = true;
    this.#prober = await Prober.start(this.netnsPath, this.#options, (line) => this.#onReport(line));
    await this.checkDockerResolver();
    this.unsteady = undefined;
    this.#world.changed();
  }

  async #run(): Promise<void> {
    const image = await ensureImage(this.#engine);
    const network = ["--network", "n1", "--ip", this.address("n1")];
    await this.#until(`${this.name} to be created`, async () => {
      await this.#dockerError("rm", "--force", this.name);
      return await this.#dockerError("run", "--detach", "--name", this.name, ...network, image);
    });
  }

  async #docker(timeoutMs: number, ...words: string[]): Promise<void> {
    await this.#until(`docker ${words.join(" ")}`, async () => await this.#dockerError(...words), timeoutMs);
  }

  // Error output of the docker command; undefined if it succeeded.
  async #dockerError(...words: string[]): Promise<string | undefined> {
    const { code, stderr } = await this.#engine.dockerCommand(words, { timeoutMs: DOCKER_MS });
    return code === 0 ? undefined : stderr.trim();
  }

  // Retries while the attempt returns an error.
  async #until(what: string, attempt: () => Promise<string | undefined>, timeoutMs = WAIT_TIMEOUT_MS): Promise<void> {
    let last = "dockerd was down";
    const once = async (): Promise<true | undefined> => {
      if (!this.#world.isDockerdUp) return undefined;
      const failure = await attempt().catch((error: unknown) => String(error));
      last = failure ?? last;
      return failure === undefined ? true : undefined;
    };
    try {
      await waitFor(what, once, { timeoutMs, everyMs: RETRY_MS });
    } catch (error) {
      throw new Error(`${(error as Error).message}; ${last}`, { cause: error });
    }
  }

  async #inspect(): Promise<{ readonly pid: number; readonly networks: readonly string[] }> {
    const info = (await this.#engine.api(`/containers/${this.name}/json`)) as {
      State: { Running: boolean; Pid: number };
      NetworkSettings: { Networks: Record<string, unknown> };
    };
    const pid = info.State.Running ? info.State.Pid : 0;
    return { pid, networks: Object.keys(info.NetworkSettings.Networks) };
  }

  // The run never ends a container without marking it, but a disturbed engine may.
  async restartIfExited(): Promise<boolean> {
    if (this.unsteady !== undefined || existsSync(`/proc/${this.#pid}`)) return false;
    this.unsteady = "its process had ended";
    this.#world.changed();
    await this.exclusively(async () => await this.restart("its process had ended"));
    return true;
  }

  #onReport({ probes, stalls, load }: ProberReport): void {
    this.#probes.push(...probes);
    this.#stalls.push(...stalls);
    for (const [what, count] of Object.entries(load)) this.load.set(what, (this.load.get(what) ?? 0) + count);
  }

  // Compares sockets by inode.
  #hasSocketOf(pid: number): boolean {
    const sockets = new Set(
      readFileSync(`/proc/${this.#pid}/net/udp`, "utf8")
        .split("\n")
        .map((line) => line.trim().split(/\s+/))
        .filter((fields) => fields[1]?.startsWith(RESOLVER_HEX) === true)
        .map((fields) => `socket:[${fields[9] ?? ""}]`),
    );
    return readdirSync(`/proc/${pid}/fd`).some((fd) => sockets.has(linkOf(`/proc/${pid}/fd/${fd}`)));
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    // Closed since it was listed.
    return "";
  }
}
