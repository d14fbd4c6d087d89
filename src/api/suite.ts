/**
 * Suite: what the package offers to test suites, as "dns11/client": wait until a name resolves in a container, and see what
 * a container has asked. A dns11 must be running for the engine; it is asked through its control socket. The types say no
 * more than a suite needs, so that they bring no others with them.
 *
 *   import { connect } from "dns11/client";
 *   const dns = await connect();
 *   await dns.waitUntilResolves("app", "db");
 *   const { last } = await dns.queries("app");
 *   ... let the app do its work ...
 *   const { queries } = await dns.queries("app", { since: last });
 */
import { setTimeout as sleep } from "node:timers/promises";

import type { MissedReport, QueriesReport, QueryReport } from "./queries.ts";
import { locateControl } from "./locate.ts";
import { Fault, codeOf, reasonOf } from "../base/lib/fault.ts";
import { ControlClient } from "./control-client.ts";

export type { MissedReport, QueriesReport, QueryReport };

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

export interface ResolvedRecord {
  readonly name: string;
  readonly type: string;
  readonly ttl: number;
  readonly data: string;
}

export interface Suite {
  /**
   * Waits until a container gets records for a name, and returns them. The container may still be on its way. Where the
   * time is over, it fails with the code NOT_RESOLVED and says what the container got last. What is asked for this is
   * among the container's queries.
   */
  waitUntilResolves(container: string, name: string, options?: WaitOptions): Promise<readonly ResolvedRecord[]>;
  /** The last queries of a container, oldest first, also of one that has just ended. */
  queries(container: string, options?: ReadOptions): Promise<QueriesReport>;
  /** Queries as they come, of one container or all of them; ends when dns11 does. */
  follow(options?: FollowOptions): AsyncIterable<QueryReport | MissedReport>;
}

const DEFAULT_STATE_DIR = "/run/dns11";
const DEFAULT_TIMEOUT_MS = 10_000;
const RETRY_INTERVAL_MS = 100;
/** What waiting does not change. */
const PERMANENT_CODES = new Set(["CONTROL_PERMISSION", "BAD_QUESTION", "BAD_BODY"]);

/** Finds the dns11 that serves an engine; fails with the code NOT_RUNNING where there is none. */
export async function connect(options: ConnectOptions = {}): Promise<Suite> {
  const path = options.socketPath ?? (await locateControl(options.stateDir ?? DEFAULT_STATE_DIR, options.engine));
  const client = new ControlClient(path);
  await client.counters();
  return {
    waitUntilResolves: async (container, name, waiting) =>
      await waitUntilResolves(client, { container, name }, waiting),
    queries: async (container, reading) => await client.queries({ container, ...reading }),
    follow: ({ signal, ...wanted } = {}) => client.follow(wanted, signal),
  };
}

async function waitUntilResolves(
  client: ControlClient,
  question: { readonly container: string; readonly name: string },
  { type = "A", timeoutMs = DEFAULT_TIMEOUT_MS }: WaitOptions = {},
): Promise<readonly ResolvedRecord[]> {
  const endMs = performance.now() + timeoutMs;
  for (;;) {
    let got: string;
    try {
      // A server that keeps silent takes longer than somebody here may want to wait.
      const restMs = Math.max(RETRY_INTERVAL_MS, Math.ceil(endMs - performance.now()));
      const { rcode, answers } = await client.lookup({ ...question, type }, restMs);
      if (rcode === "NOERROR" && answers.length > 0) return answers;
      got = rcode === "NOERROR" ? "no records" : (rcode ?? "no answer");
    } catch (error) {
      if (PERMANENT_CODES.has(codeOf(error) ?? "")) throw error;
      got = reasonOf(error);
    }
    if (performance.now() + RETRY_INTERVAL_MS > endMs) {
      const { container, name } = question;
      const what = `"${name}" (${type}) did not resolve in "${container}" within ${timeoutMs} ms`;
      throw new Fault("NOT_RESOLVED", `${what}; at last it got: ${got}`);
    }
    await sleep(RETRY_INTERVAL_MS);
  }
}
