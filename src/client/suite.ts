/**
 * Suite: what the package offers to test suites, as "dns11/client": wait until a name resolves in a container, and see what
 * a container has asked. A dns11 must be running for the engine; it is asked through its control socket.
 *
 *   import { connect } from "dns11/client";
 *   const dns = await connect();
 *   await dns.waitUntilResolves("app", "db");
 *   const { last } = await dns.queries("app");
 *   ... let the app do its work ...
 *   const { queries } = await dns.queries("app", { since: last });
 */
import { setTimeout as sleep } from "node:timers/promises";

import type { MissedReport, QueriesReport, QueryReport } from "../daemon/query-report.ts";
import { locateControl } from "../daemon/locate.ts";
import type { Status } from "../daemon/status.ts";
import { Fault, codeOf, reasonOf } from "../lib/fault.ts";
import { Client, type LookupAnswer, type QueriesWanted } from "./client.ts";

export type { LookupAnswer, MissedReport, QueriesReport, QueryReport, Status };

export interface ConnectOptions {
  /** The engine's socket, as `docker -H` takes it; without it the engine is found as the docker command finds it. */
  readonly engine?: string;
  /** The control socket itself, where that is known. */
  readonly socketPath?: string;
  /** Where dns11 keeps its control socket, if `--state-dir` said so. */
  readonly stateDir?: string;
}

export interface WaitOptions {
  /** "A" unless told otherwise. */
  readonly type?: string;
  /** 10 seconds unless told otherwise. */
  readonly timeoutMs?: number;
}

export interface ReadOptions {
  /** Only what came after this number: `last` of an answer before. */
  readonly since?: number;
  /** A pattern for the name, with `*` and `?`. */
  readonly name?: string;
  /** Response codes, with commas between them. */
  readonly rcode?: string;
}

export interface FollowOptions {
  readonly container?: string;
  readonly name?: string;
  readonly rcode?: string;
  /** How many of those that are there already come first. */
  readonly last?: number;
  /** Ends it; so does leaving the loop. */
  readonly signal?: AbortSignal;
}

const DEFAULT_STATE_DIR = "/run/dns11";
const DEFAULT_TIMEOUT_MS = 10_000;
const ASK_EVERY_MS = 100;

/** Finds the dns11 that serves an engine; fails with the code NOT_RUNNING where there is none. */
export async function connect(options: ConnectOptions = {}): Promise<Suite> {
  const path = options.socketPath ?? (await locateControl(options.stateDir ?? DEFAULT_STATE_DIR, options.engine));
  const client = new Client(path);
  await client.counters();
  return new Suite(client);
}

export class Suite {
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  /** What dns11 does in every container. */
  async status(): Promise<Status> {
    return await this.#client.status();
  }

  /**
   * Waits until a container gets records for a name, and returns them. The container may still be on its way. What it got
   * last is told where the time is over (code NOT_RESOLVED).
   */
  async waitUntilResolves(
    container: string,
    name: string,
    options: WaitOptions = {},
  ): Promise<LookupAnswer["answers"]> {
    const { type = "A", timeoutMs = DEFAULT_TIMEOUT_MS } = options;
    const endMs = performance.now() + timeoutMs;
    for (;;) {
      let got: string;
      try {
        const { rcode, answers } = await this.#client.lookup({ container, name, type });
        if (rcode === "NOERROR" && answers.length > 0) return answers;
        got = answers.length === 0 && rcode === "NOERROR" ? "no records" : rcode;
      } catch (error) {
        if (PERMANENT.has(codeOf(error) ?? "")) throw error;
        got = reasonOf(error);
      }
      if (performance.now() + ASK_EVERY_MS > endMs) {
        const what = `"${name}" (${type}) did not resolve in "${container}" within ${timeoutMs} ms`;
        throw new Fault("NOT_RESOLVED", `${what}; at last it got: ${got}`);
      }
      await sleep(ASK_EVERY_MS);
    }
  }

  /** The last queries of a container, oldest first, also of one that has just ended. */
  async queries(container: string, options: ReadOptions = {}): Promise<QueriesReport> {
    return await this.#client.queries({ container, ...options });
  }

  /** Queries as they come, of one container or all of them. */
  async *follow({ signal, ...wanted }: FollowOptions = {}): AsyncGenerator<QueryReport | MissedReport, void> {
    yield* this.#client.follow(wanted satisfies QueriesWanted, signal);
  }
}

/** What waiting does not change. */
const PERMANENT = new Set(["CONTROL_PERMISSION", "BAD_TYPE", "BAD_NAME"]);
