// The lean asker: crowd.c in one namespace. A query costs it one send and one receive, and it reads replies where it has
// sent, so it sees answers that are there before it could wait for them. dnsperf takes more time for a query than the
// kernel does, sends in one thread and receives in another, and measures the wake-up of the second one.

import { cpus } from "node:os";

import { check } from "../support/program/command.ts";
import { cpuSeconds } from "./cpu-time.ts";
import { REALTIME, STEADILY_PER_SECOND } from "./dnsperf.ts";
import { type LoadResult, parseLoadResult } from "./load-program.ts";
import { compile } from "./native.ts";
import type { Sample } from "./tally.ts";

const ONE = 1;
// With two cores a hundred queries are in flight, as with dnsperf.
const WINDOW = 50;
// A steady client does not wait for its last reply.
const STEADY_WINDOW = 16;
const FULL_RATE = 0;

export type Asked = { readonly netnsPath: string; readonly name: string };

export class LeanAsker {
  readonly #program: string;

  private constructor(program: string) {
    this.#program = program;
  }

  // Undefined without a compiler.
  static async compile(folder: string): Promise<LeanAsker | undefined> {
    const program = await compile("crowd", folder);
    return program === undefined ? undefined : new LeanAsker(program);
  }

  // One process on each core.
  async atFullSpeed(asked: Asked, pid: number, seconds: number): Promise<Sample> {
    const before = cpuSeconds(pid);
    const results = await Promise.all(cpus().map(async () => await this.#ask(asked, FULL_RATE, seconds, WINDOW)));
    const used = cpuSeconds(pid) - before;
    const answered = sum(results, (result) => result.answered);
    return {
      perSecond: sum(results, (result) => result.answered / result.seconds),
      cpuMicros: (used / answered) * 1e6,
      lost: sum(results, (result) => result.queries - result.answered),
    };
  }

  // One query after the other.
  async alone(asked: Asked, seconds: number): Promise<Sample> {
    return latencyOf(await this.#ask(asked, FULL_RATE, seconds, ONE));
  }

  async steadily(asked: Asked, seconds: number, perSecond = STEADILY_PER_SECOND): Promise<Sample> {
    return latencyOf(await this.#ask(asked, perSecond, seconds, STEADY_WINDOW, REALTIME));
  }

  async #ask(
    { netnsPath, name }: Asked,
    perSecond: number,
    seconds: number,
    window: number,
    prefix: readonly string[] = [],
  ): Promise<LoadResult> {
    const args = [perSecond, seconds * 1_000, window].map(String);
    const [command, ...rest] = [...prefix, this.#program, ...args, name];
    return parseLoadResult(await check(command, rest, { input: `${netnsPath}\n` }));
  }
}

function latencyOf({ queries, answered, p50Ms, p99Ms }: LoadResult): Sample {
  return { p50Ms, p99Ms, lost: queries - answered };
}

function sum<T>(all: readonly T[], of: (one: T) => number): number {
  return all.reduce((total, one) => total + of(one), 0);
}
