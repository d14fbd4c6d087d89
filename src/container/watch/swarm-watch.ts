/**
 * SwarmWatch: reads the engine's lists of the swarm networks that containers are on, because there are no events of tasks.
 * One list is read at a time, and each network waits for its turn.
 */
import { reasonOf } from "../../base/lib/fault.ts";
import { guard } from "../../base/lib/guard.ts";
import { CoalescedCall } from "../../base/lib/async.ts";
import { LIMITS } from "../../base/limits.ts";
import type { SwarmList } from "../facts/swarm-fact.ts";
import type { Engine } from "./engine.ts";
import { type ServiceJson, swarmList } from "./swarm-json.ts";

export interface SwarmWatchParts {
  readonly engine: Pick<Engine, "swarmNetwork" | "swarmServices">;
  /** The ids of swarm networks with a container of this engine. */
  readonly networks: () => readonly string[];
  readonly put: (networkId: string, list: SwarmList) => void;
  readonly remove: (networkId: string) => void;
  readonly onFailed: (reason: string) => void;
}

export class SwarmWatch {
  readonly #parts: SwarmWatchParts;
  /** When each network was read last. */
  readonly #readMs = new Map<string, number>();
  readonly #wanted = new Set<string>();
  readonly #refresh: CoalescedCall<void>;
  #isReading = false;

  constructor(parts: SwarmWatchParts) {
    this.#parts = parts;
    this.#refresh = new CoalescedCall(async () => await this.#read(parts.networks()), LIMITS.swarmPollAgainMs);
  }

  /** Reads until `signal`. */
  start(signal: AbortSignal): void {
    const timer = setInterval(() => guard.run("engine", 0, () => void this.#turn()), LIMITS.swarmPollAgainMs);
    timer.unref();
    signal.addEventListener("abort", () => clearInterval(timer), { once: true });
  }

  /** The list of a network lacks a name that is queried. */
  want(networkId: string): void {
    this.#wanted.add(networkId);
  }

  /** Reads all lists again, for somebody who waits; at most once a second. */
  async refresh(): Promise<void> {
    if (this.#parts.networks().length > 0) await this.#refresh.get();
  }

  async #turn(): Promise<void> {
    const networks = this.#parts.networks();
    for (const id of this.#readMs.keys()) if (!networks.includes(id)) this.#forget(id);
    if (this.#isReading || networks.length === 0) return;
    const nowMs = performance.now();
    const ageOf = (id: string): number => nowMs - (this.#readMs.get(id) ?? -Infinity);
    await this.#read(networks.filter((id) => this.#wanted.has(id) || ageOf(id) >= LIMITS.swarmPollMs));
  }

  /** Those that have waited longest, as many as one round reads. */
  async #read(networks: readonly string[]): Promise<void> {
    const { engine, put, onFailed } = this.#parts;
    const due = networks.toSorted((a, b) => this.#last(a) - this.#last(b)).slice(0, LIMITS.swarmNetworks);
    if (due.length === 0) return;
    this.#isReading = true;
    try {
      const services = await this.#services();
      for (const id of due) {
        this.#wanted.delete(id);
        this.#readMs.set(id, performance.now());
        const json = await engine.swarmNetwork(id);
        if (json !== undefined) put(id, swarmList(id, json, services));
      }
    } catch (error) {
      onFailed(reasonOf(error));
    } finally {
      this.#isReading = false;
    }
  }

  /** The last container has left it. */
  #forget(id: string): void {
    this.#readMs.delete(id);
    this.#wanted.delete(id);
    this.#parts.remove(id);
  }

  #last(id: string): number {
    return this.#readMs.get(id) ?? -Infinity;
  }

  /** Only managers have them; a list that is too long does not keep the networks' from being read. */
  async #services(): Promise<readonly ServiceJson[] | undefined> {
    try {
      return await this.#parts.engine.swarmServices();
    } catch (error) {
      this.#parts.onFailed(reasonOf(error));
      return undefined;
    }
  }
}
