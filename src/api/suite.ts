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
 *   dns.close();
 */
import { setMaxListeners } from "node:events";

import type { Cause, LastingFix, NotResolved } from "./causes.ts";
import type { FailureReport, FailuresReport } from "./failures.ts";
import { LiveLab } from "./lab/lab.ts";
import type { LeaseConnection } from "./lease-connection.ts";
import { PolicyHold } from "./policy-hold.ts";
import type { Lab } from "./lab/test-lab.ts";
import type { LeaseScope } from "./lease.ts";
import { refuseUnknownOptions, readTimeout } from "./lab/rule-options.ts";
import type { Explanation } from "./names.ts";
import { waitUntilResolves } from "./resolve-wait.ts";
import type { MissedReport, QueriesReport, QueryReport } from "./queries.ts";
import { locateControl } from "./locate.ts";
import { defaultStateDir } from "./state-paths.ts";
import { ControlClient } from "./control-client.ts";
import { Fault } from "../base/lib/fault.ts";
import { oldNodeText } from "../base/lib/node-version.ts";

export type { AskedOptions, LabReport, LabRule, LabTape } from "./lab/test-lab.ts";
export type { FaultOptions, LabAnswer, RuleLimits } from "./lab/rule-options.ts";
export type { RecordedQuery, RuleUseReport } from "./lease.ts";
export type { Lab, LeaseScope };
export type { Explanation, FailureReport, FailuresReport };
export type { Cause, LastingFix, MissedReport, NotResolved, QueriesReport, QueryReport };

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

export interface FailuresOptions {
  /** A container's name, its Compose service, or the beginning of its ID; by default all containers. */
  readonly container?: string;
  readonly project?: string;
  readonly service?: string;
}

/** The keys of a policy in the settings file, such as `allow: ["api.example.com"]`. */
export interface PolicyOptions {
  /** Default: one that no other has. */
  readonly name?: string;
  /** Which containers: network=NAME, project=NAME, service=NAME, container=NAME, label=KEY or label=KEY=VALUE. */
  readonly for: string | readonly string[];
  readonly allow?: readonly string[];
  readonly deny?: readonly string[];
  /** Default: enforce. */
  readonly mode?: "audit" | "learn" | "enforce";
  readonly peers?: "allow" | "names" | "deny";
  readonly host?: "allow" | "deny";
  readonly private?: "allow" | "deny";
  readonly addresses?: "names" | "enforce";
  /** What holds when it has ended, for containers that still run. Default: closed. */
  readonly after?: "closed" | "open";
}

export interface HeldPolicy extends AsyncDisposable {
  /** As `dns11 policy` shows it. */
  readonly name: string;
  end(): Promise<void>;
}

/** What calls of this client fail with. */
export interface ClientError extends Error {
  /** Stable, such as NOT_RUNNING, NO_SUCH_CONTAINER, NOT_ASKED or BAD_OPTION. */
  readonly code: string;
  /** What helps, if it is known. */
  readonly remedy: string | undefined;
}

export function isClientError(error: unknown): error is ClientError {
  return error instanceof Fault;
}

export interface Suite {
  /**
   * Waits until a name resolves to records in a container, and returns them; of a Compose service, in each of its containers. The
   * container need not be running yet. After the timeout it fails with the code NOT_RESOLVED, the last result, and in `causes` (see
   * `NotResolved`) why. The lookups are not among the container's queries.
   */
  waitUntilResolves(container: string, name: string, options?: WaitOptions): Promise<readonly ResolvedRecord[]>;
  /** The past queries of a container, oldest first, also of one that has just stopped. */
  queries(container: string, options?: ReadOptions): Promise<QueriesReport>;
  /** The names that fail in containers, with causes and fixes. */
  failures(options?: FailuresOptions): Promise<FailuresReport>;
  /** How a name resolves in a container, or why it fails. The query is not among the container's. */
  explain(container: string, name: string, options?: { readonly type?: string }): Promise<Explanation>;
  /** Queries as they arrive, of one container or of all; ends when dns11 stops, or when the client is closed. */
  follow(options?: FollowOptions): AsyncIterable<QueryReport | MissedReport>;
  /**
   * Opens a lab for some containers, also ones that start later: faults, answers and recordings, which end with it. Without a
   * choice, for all containers.
   */
  lab(scope?: LeaseScope): Promise<Lab>;
  /**
   * Holds containers to a policy, also ones that start later, in addition to those of the settings: in force when it resolves, until
   * it is ended, or this process has. Then they get nothing any more while they run, unless `after` is "open".
   */
  policy(options: PolicyOptions): Promise<HeldPolicy>;
  /** Ends everything that is under way. What is called afterwards fails with the code CLOSED. */
  close(): void;
}

/** Policies of this process without a name of their own. */
let policiesMade = 0;

const DEFAULT_TIMEOUT_MS = 10_000;
const CONNECT_OPTIONS = ["engine", "socketPath", "stateDir"];
const WAIT_OPTIONS = ["type", "timeoutMs"];
const READ_OPTIONS = ["since", "name", "rcode"];
const SCOPE_OPTIONS = ["container", "project", "service", "network", "label"];
const POLICY_OPTIONS = ["name", "for", "allow", "deny", "mode", "peers", "host", "private", "addresses", "after"];
const FAILURES_OPTIONS = ["container", "project", "service"];
const FOLLOW_OPTIONS = ["container", "name", "rcode", "last", "signal"];

/** Connects to the dns11 that serves an engine; fails with the code NOT_RUNNING if there is none. */
export async function connect(options: ConnectOptions = {}): Promise<Suite> {
  const refusal = oldNodeText();
  if (refusal !== undefined) throw new Fault("PLATFORM", refusal);
  refuseUnknownOptions("connect", options, CONNECT_OPTIONS);
  const path =
    options.socketPath ?? (await locateControl(options.stateDir ?? defaultStateDir(options.engine), options.engine));
  const closing = new AbortController();
  const { signal: closed } = closing;
  // Each request listens to it.
  setMaxListeners(0, closed);
  const client = new ControlClient(path, closed);
  await client.counters();
  return {
    waitUntilResolves: async (container, name, waiting = {}) => {
      refuseUnknownOptions("waitUntilResolves", waiting, WAIT_OPTIONS);
      const { type = "A", timeoutMs = DEFAULT_TIMEOUT_MS } = waiting;
      const limitMs = readTimeout("waitUntilResolves", timeoutMs);
      return await waitUntilResolves(client, { container, name, type }, limitMs, closed);
    },
    queries: async (container, reading) => {
      refuseUnknownOptions("queries", reading, READ_OPTIONS);
      return await client.queries({ container, ...reading });
    },
    failures: async (choice = {}) => {
      refuseUnknownOptions("failures", choice, FAILURES_OPTIONS);
      return await client.failures(choice);
    },
    explain: async (container, name, asking = {}) => {
      refuseUnknownOptions("explain", asking, ["type"]);
      return await client.explain({ container, name, ...asking });
    },
    follow: (following = {}) => {
      refuseUnknownOptions("follow", following, FOLLOW_OPTIONS);
      const { signal, ...filter } = following;
      return client.follow(filter, signal);
    },
    lab: async (scope = {}) => {
      refuseUnknownOptions("lab", scope, SCOPE_OPTIONS);
      return new LiveLab(client, await client.openLease(), scope);
    },
    policy: async (choice) => {
      refuseUnknownOptions("policy", choice, POLICY_OPTIONS);
      const { name = `suite-${process.pid}-${++policiesMade}`, for: whom, after, mode = "enforce", ...keys } = choice;
      const policies = { [name]: { ...keys, mode, for: typeof whom === "string" ? [whom] : whom } };
      const open = async (): Promise<LeaseConnection> => await client.openPolicyLease();
      const hold = await PolicyHold.start(open, { policies, ...(after && { after }) });
      const end = async (): Promise<void> => await hold.end();
      return { name: hold.names[0] ?? name, end, [Symbol.asyncDispose]: end };
    },
    close: () => closing.abort(),
  };
}
