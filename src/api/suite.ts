/**
 * Suite: the client for test suites, exported as "dns11/client": it waits until a name resolves in a container, and returns
 * the queries of a container. A dns11 must be running for the engine. The types are self-contained, so that a test suite needs
 * no other packages to compile.
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
import { defaultStateDir } from "./state-paths.ts";
import { ControlClient } from "./control-client.ts";

export type { MissedReport, QueriesReport, QueryReport };

export interface ConnectOptions {
  /** The Docker socket, as in `docker -H`; by default it is found as the docker command does. */
  readonly engine?: string;
  /** The path of the control socket, if it is known. */
  readonly socketPath?: string;
  /** The directory given to dns11 as `--state-dir`, if any. */
  readonly stateDir?: string;
}

export interface WaitOptions {
  /** Default: "A". */
  readonly type?: string;
  /** Default: 10 seconds. */
  readonly timeoutMs?: number;
}

export interface ReadOptions {
  /** Only queries after this sequence number: `last` of a previous result. */
  readonly since?: number;
  /** A pattern for the name, with `*` and `?`. */
  readonly name?: string;
  /** Response codes, separated by commas. */
  readonly rcode?: string;
}

export interface FollowOptions {
  readonly container?: string;
  readonly name?: string;
  readonly rcode?: string;
  /** The number of past queries to start with. */
  readonly last?: number;
  /** Ends the iteration, as does leaving the loop. */
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
   * Waits until a name resolves to records in a container, and returns them. The container need not be running yet. After
   * the timeout it fails with the code NOT_RESOLVED and the last result. The lookups are not among the container's queries.
   */
  waitUntilResolves(container: string, name: string, options?: WaitOptions): Promise<readonly ResolvedRecord[]>;
  /** The past queries of a container, oldest first, also of one that has just stopped. */
  queries(container: string, options?: ReadOptions): Promise<QueriesReport>;
  /** Queries as they arrive, of one container or of all; ends when dns11 stops. */
  follow(options?: FollowOptions): AsyncIterable<QueryReport | MissedReport>;
}

const DEFAULT_TIMEOUT_MS = 10_000;
const RETRY_INTERVAL_MS = 100;
/** Error codes that waiting does not resolve. */
const PERMANENT_CODES = new Set(["CONTROL_PERMISSION", "BAD_QUESTION", "BAD_BODY"]);

/** Connects to the dns11 that serves an engine; fails with the code NOT_RUNNING if there is none. */
export async function connect(options: ConnectOptions = {}): Promise<Suite> {
  const path =
    options.socketPath ?? (await locateControl(options.stateDir ?? defaultStateDir(options.engine), options.engine));
  const client = new ControlClient(path);
  await client.counters();
  return {
    waitUntilResolves: async (container, name, waiting) =>
      await waitUntilResolves(client, { container, name }, waiting),
    queries: async (container, reading) => await client.queries({ container, ...reading }),
    follow: ({ signal, ...filter } = {}) => client.follow(filter, signal),
  };
}

async function waitUntilResolves(
  client: ControlClient,
  question: { readonly container: string; readonly name: string },
  { type = "A", timeoutMs = DEFAULT_TIMEOUT_MS }: WaitOptions = {},
): Promise<readonly ResolvedRecord[]> {
  const endMs = performance.now() + timeoutMs;
  for (;;) {
    let result: string;
    try {
      // A server that does not reply takes longer than the remaining time.
      const restMs = Math.max(RETRY_INTERVAL_MS, Math.ceil(endMs - performance.now()));
      const { rcode, answers } = await client.lookup({ ...question, type }, restMs);
      if (rcode === "NOERROR" && answers.length > 0) return answers;
      result = rcode === "NOERROR" ? "no records" : (rcode ?? "no reply");
    } catch (error) {
      if (PERMANENT_CODES.has(codeOf(error) ?? "")) throw error;
      result = reasonOf(error);
    }
    if (performance.now() + RETRY_INTERVAL_MS > endMs) {
      const { container, name } = question;
      const what = `"${name}" (${type}) did not resolve in "${container}" within ${timeoutMs} ms`;
      throw new Fault("NOT_RESOLVED", `${what}; last result: ${result}`);
    }
    await sleep(RETRY_INTERVAL_MS);
  }
}
