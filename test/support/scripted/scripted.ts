/**
 * Scripted upstream servers: several of them in one network namespace that play a scenario, with a common record of
 * their queries, so that a test sees which was queried first.
 */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";

import { SYSTEM_PATH } from "../program/command.ts";
import { addAddress, inNetns } from "../rig/netns.ts";
import { unrefChild } from "../rig/reaper.ts";
import { type Scenario, parseScenario } from "./scenario.ts";
import type { UpstreamQuestion } from "../servers/upstream-question.ts";
import { inTime } from "../rig/wait.ts";

export type ScriptedQuestion = UpstreamQuestion & {
  /** Position of the queried server, from 1. */
  readonly server: number;
  /** Time since the scenario started. */
  readonly atMs: number;
};

/** A line to the servers' process, and a line from it. */
export type ScriptedOrder = { readonly order: number; readonly play?: Scenario };
export type ScriptedLine = { readonly query: ScriptedQuestion } | { readonly done: number };

const FOLDER = new URL("../../../../test/scenarios/", import.meta.url);

export interface ScriptedOptions {
  readonly addresses: readonly string[];
  /** The namespace already has the addresses; by default those other than loopback are added. */
  readonly hasAddresses?: boolean;
}

/** "NAME.scn" in test/scenarios, or the lines themselves. */
export function readScenario(fileOrLines: string): Scenario {
  const isFile = fileOrLines.endsWith(".scn");
  const text = isFile ? readFileSync(new URL(fileOrLines, FOLDER), "utf8") : fileOrLines;
  return parseScenario(text, isFile ? fileOrLines : "scenario");
}

export async function startScripted(
  place: { netnsPath: string },
  scenario: string,
  { addresses, hasAddresses = false }: ScriptedOptions,
): Promise<ScriptedServers> {
  for (const address of addresses) {
    if (!hasAddresses && !address.startsWith("127.")) await addAddress(place.netnsPath, address);
  }
  const program = fileURLToPath(new URL("./scripted-main.js", import.meta.url));
  const [command = "", ...args] = inNetns(place.netnsPath, process.execPath, [program, ...addresses]);
  const child = spawn(command, args, {
    stdio: ["pipe", "pipe", "pipe"],
    detached: true,
    env: { ...process.env, PATH: SYSTEM_PATH },
  });
  const servers = new ScriptedServers(child);
  await servers.started();
  await servers.play(scenario);
  return servers;
}

export class ScriptedServers implements AsyncDisposable {
  readonly #process: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #waiting = new Map<number, () => void>();
  readonly #ended: Promise<void>;
  #questions: ScriptedQuestion[] = [];
  #orders = 0;
  #stderr = "";

  constructor(process: ChildProcessByStdio<Writable, Readable, Readable>) {
    this.#process = process;
    process.stderr.on("data", (chunk: Buffer) => (this.#stderr += chunk.toString()));
    process.stdin.on("error", () => {});
    createInterface({ input: process.stdout }).on("line", (line) => this.#onLine(JSON.parse(line) as ScriptedLine));
    this.#ended = once(process, "close").then(() => undefined);
    unrefChild(process);
  }

  async started(): Promise<void> {
    await this.#done(0);
  }

  /** Starts a scenario from its beginning, replacing the previous one. */
  async play(scenario: string): Promise<void> {
    await this.#order({ play: readScenario(scenario) });
  }

  /** Queries in order of arrival, since the start or the last forget(). */
  async queries(): Promise<readonly ScriptedQuestion[]> {
    await this.#order({});
    return [...this.#questions];
  }

  /** Those for one name, ignoring case. */
  async queriesFor(name: string): Promise<readonly ScriptedQuestion[]> {
    return (await this.queries()).filter((question) => question.name.toLowerCase() === name.toLowerCase());
  }

  async forget(): Promise<void> {
    await this.queries();
    this.#questions = [];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.stdin.end();
    await inTime(this.#ended, "the exit of the scripted servers");
  }

  async #order(what: Omit<ScriptedOrder, "order">): Promise<void> {
    const order = (this.#orders += 1);
    this.#process.stdin.write(`${JSON.stringify({ ...what, order })}\n`);
    await this.#done(order);
  }

  async #done(order: number): Promise<void> {
    const ended = this.#ended.then(() => {
      throw new Error(`the scripted servers exited: ${this.#stderr.trim()}`);
    });
    const acknowledged = new Promise<void>((resolve) => this.#waiting.set(order, resolve));
    await inTime(Promise.race([acknowledged, ended]), "a line from the scripted servers");
  }

  #onLine(line: ScriptedLine): void {
    if ("query" in line) this.#questions.push(line.query);
    else this.#waiting.get(line.done)?.();
  }
}
