/**
 * ControlClient: accesses a running dns11 through its control socket, for the commands and for the package's test client.
 */
import { startRemedy } from "./state-paths.ts";
import type { IncomingMessage } from "node:http";

import type { CountersReport, MissedReport, QueriesReport, QueryReport, SkippedReport } from "./queries.ts";
import type { EgressReport } from "./egress.ts";
import type { FailureReport, FailuresReport } from "./failures.ts";
import type { RepairReport, Status, ReloadReport, ProbesReport, ProbesRequest } from "./status.ts";
import type { CacheEntriesReport, CacheReport, FlushReport } from "./cache.ts";
import type { ContainersReport, NetworksReport, MatrixReport } from "./containers.ts";
import type { EventsReport } from "./events.ts";
import type { HistoryReport } from "./history.ts";
import type { LeasesReport } from "./lease.ts";
import { linesOf } from "./lines.ts";
import { LeaseConnection } from "./lease-connection.ts";
import type { Explanation, Lookup, LookupRequest, NameRequest, NameList } from "./names.ts";
import type {
  PoliciesReport,
  PolicyAllowRequest,
  PolicyAllowed,
  PolicyCheck,
  PolicyCheckRequest,
  PolicyLogReport,
  PolicyRefusal,
} from "./policies.ts";
import type { UpstreamReport } from "./upstreams.ts";
import { Fault, codeOf } from "../base/lib/fault.ts";
import { openUnix, textOf } from "./unix-http.ts";

/** The limit for the response headers and for each chunk of a single value. A stream may pause for any time. */
const TIMEOUT_MS = 5_000;
/** The limit for requests that query upstream servers, which have shorter time limits of their own. */
const QUERY_TIMEOUT_MS = 120_000;

/** A choice of containers; without any field, all. */
export interface ContainersRequest {
  /** The name of a container, its Compose service, or the beginning of its ID; an error if it is several. */
  readonly container?: string;
  /** Containers of this Compose project, and of this service. */
  readonly project?: string;
  readonly service?: string;
}

/** A filter for queries; without any field it matches all. */
interface QueriesRequest extends ContainersRequest {
  /** A pattern for the name, with `*` and `?`. */
  readonly name?: string;
  /** Response codes, separated by commas. */
  readonly rcode?: string;
  /** The number of past queries. */
  readonly last?: number;
  /** Whether to say why queries failed. */
  readonly causes?: boolean;
}

export class ControlClient {
  readonly #path: string;
  readonly #closed: AbortSignal | undefined;

  /** `path` is the path of the control socket; `closed` ends all requests. */
  constructor(path: string, closed?: AbortSignal) {
    this.#path = path;
    this.#closed = closed;
  }

  async status(): Promise<Status> {
    return (await this.#call("GET", "/v1/status")) as Status;
  }

  /** Restores a KIND node; returns its name. */
  async detachNode(node: string): Promise<{ readonly name: string }> {
    return (await this.#call("POST", "/v1/kind/detach", { node })) as { readonly name: string };
  }

  /** Serves a detached node again. */
  async attachNode(node: string): Promise<{ readonly name: string }> {
    return (await this.#call("POST", "/v1/kind/attach", { node })) as { readonly name: string };
  }

  /** Verifies a container, by its name or ID, and attaches it again if needed. */
  async repair(container: string): Promise<RepairReport> {
    return (await this.#call("POST", "/v1/repair", { container })) as RepairReport;
  }

  /** Announces test queries from a container's namespace, which then count nowhere. */
  async announceProbes(probes: ProbesRequest): Promise<ProbesReport> {
    return (await this.#call("POST", "/v1/probes", probes)) as ProbesReport;
  }

  /** Query counters of all containers. */
  async counters(filter: Omit<ContainersRequest, "container"> = {}): Promise<CountersReport> {
    return (await this.#call("GET", `/v1/counters?${parametersOf(filter)}`)) as CountersReport;
  }

  /** Past queries, oldest first. */
  async queries(filter: QueriesRequest & { readonly since?: number } = {}): Promise<QueriesReport> {
    return (await this.#call("GET", `/v1/queries?${parametersOf(filter)}`)) as QueriesReport;
  }

  /** Queries as they arrive, until `signal` or until dns11 stops. */
  async *follow(filter: QueriesRequest = {}, signal?: AbortSignal): AsyncGenerator<QueryReport | MissedReport, void> {
    yield* this.#stream<QueryReport | MissedReport>("/v1/queries", { ...filter, follow: true }, signal);
  }

  /** The same with at most so many queries a second, after the last past ones. */
  async *followSome(
    { perSecond, last }: { readonly perSecond: number; readonly last: number },
    signal?: AbortSignal,
  ): AsyncGenerator<QueryReport | MissedReport | SkippedReport, void> {
    yield* this.#stream<QueryReport | MissedReport | SkippedReport>(
      "/v1/queries",
      { perSecond, last, follow: true },
      signal,
    );
  }

  /** Names that fail, of some containers or of all. */
  async failures(filter: ContainersRequest = {}): Promise<FailuresReport> {
    return (await this.#call("GET", `/v1/failures?${parametersOf(filter)}`)) as FailuresReport;
  }

  /** Where containers connected to, of some containers or of all. */
  async egress(filter: ContainersRequest = {}): Promise<EgressReport> {
    return (await this.#call("GET", `/v1/egress?${parametersOf(filter)}`)) as EgressReport;
  }

  /** The names of this engine's containers: all, or as one container resolves them. */
  async names(filter: ContainersRequest = {}): Promise<NameList> {
    return (await this.#call("GET", `/v1/names?${parametersOf(filter)}`)) as NameList;
  }

  /** The present failures, then each again whenever it happens again, until `signal` or until dns11 stops. */
  async *followFailures(filter: ContainersRequest = {}, signal?: AbortSignal): AsyncGenerator<FailureReport, void> {
    yield* this.#stream<FailureReport>("/v1/failures", { ...filter, follow: true }, signal);
  }

  async *#stream<T>(path: string, filter: object, signal?: AbortSignal): AsyncGenerator<T, void> {
    const answer = await this.#open("GET", `${path}?${parametersOf(filter)}`);
    answer.socket.setTimeout(0);
    const stop = (): void => void answer.destroy();
    signal?.addEventListener("abort", stop, { once: true });
    if (signal?.aborted === true) stop();
    try {
      if (answer.statusCode !== 200) throw this.#errorOf(answer, await this.#bodyOf(answer));
      for await (const line of linesOf(answer)) yield JSON.parse(line) as T;
    } catch (error) {
      // A stream that breaks off has ended, on either side.
      if (error instanceof Fault) throw error;
    } finally {
      signal?.removeEventListener("abort", stop);
      answer.destroy();
    }
  }

  /** Resolves a name from inside a container, as a program in it would; `rcode` is null if there was no reply. */
  async lookup(lookupRequest: LookupRequest, timeoutMs = QUERY_TIMEOUT_MS): Promise<Lookup> {
    return (await this.#call("POST", "/v1/lookup", lookupRequest, timeoutMs)) as Lookup;
  }

  /** How dns11 resolves a name for a container. */
  async explain(nameRequest: NameRequest, timeoutMs = QUERY_TIMEOUT_MS): Promise<Explanation> {
    return (await this.#call("POST", "/v1/explain", nameRequest, timeoutMs)) as Explanation;
  }

  /** A lease: its rules are in force until it is closed, or until this process ends. */
  async openLease(): Promise<LeaseConnection> {
    return await this.#openLines("/v1/lease");
  }

  /** The same for policies. */
  async openPolicyLease(): Promise<LeaseConnection> {
    return await this.#openLines("/v1/policies");
  }

  async #openLines(path: "/v1/lease" | "/v1/policies"): Promise<LeaseConnection> {
    const failure = {
      ofConnection: (error: Error): Fault => this.#fault(error),
      ofReply: async (answer: IncomingMessage): Promise<Fault> => this.#errorOf(answer, await this.#bodyOf(answer)),
    };
    return await LeaseConnection.open(this.#path, failure, this.#closed, path);
  }

  /** Containers with a policy, and how far each is confined. */
  async policies(): Promise<PoliciesReport> {
    return (await this.#call("GET", "/v1/policies")) as PoliciesReport;
  }

  /** What the policies of a container say of a name. */
  async checkPolicy(request: PolicyCheckRequest): Promise<PolicyCheck> {
    return (await this.#call("GET", `/v1/policies/check?${parametersOf({ ...request })}`)) as PolicyCheck;
  }

  /** Allows a container a name for a while. */
  async allowName(request: PolicyAllowRequest): Promise<PolicyAllowed> {
    return (await this.#call("POST", "/v1/policies/allow", request)) as PolicyAllowed;
  }

  /** The last refusals, oldest first. */
  async policyLog(filter: ContainersRequest & { readonly last?: number } = {}): Promise<PolicyLogReport> {
    return (await this.#call("GET", `/v1/policies/log?${parametersOf(filter)}`)) as PolicyLogReport;
  }

  /** The last refusals, then each as it happens, until `signal` or until dns11 stops. */
  async *followPolicyLog(
    filter: ContainersRequest & { readonly last?: number },
    signal?: AbortSignal,
  ): AsyncGenerator<PolicyRefusal, void> {
    yield* this.#stream<PolicyRefusal>("/v1/policies/log", { ...filter, follow: true }, signal);
  }

  /** The leases that are open, and what their rules have done. */
  async leases(): Promise<LeasesReport> {
    return (await this.#call("GET", "/v1/leases")) as LeasesReport;
  }

  /** Every upstream server with its state. */
  async upstreams(): Promise<UpstreamReport> {
    return (await this.#call("GET", "/v1/upstreams")) as UpstreamReport;
  }

  async cache(): Promise<CacheReport> {
    return (await this.#call("GET", "/v1/cache")) as CacheReport;
  }

  /** Cached replies, of names that match the pattern if there is one. */
  async cacheEntries(last: number, name?: string): Promise<CacheEntriesReport> {
    return (await this.#call("GET", `/v1/cache/entries?${parametersOf({ last, name })}`)) as CacheEntriesReport;
  }

  /** The containers of the engine, also those that are not running. */
  async containers(): Promise<ContainersReport> {
    return (await this.#call("GET", "/v1/containers?all=true")) as ContainersReport;
  }

  async networks(): Promise<NetworksReport> {
    return (await this.#call("GET", "/v1/networks")) as NetworksReport;
  }

  /** Which containers can resolve which services. */
  async matrix(): Promise<MatrixReport> {
    return (await this.#call("GET", "/v1/matrix")) as MatrixReport;
  }

  /** The last events, oldest first. */
  async events(last: number): Promise<EventsReport> {
    return (await this.#call("GET", `/v1/events?last=${last}`)) as EventsReport;
  }

  /** Rates and servers of the last minutes. */
  async history(): Promise<HistoryReport> {
    return (await this.#call("GET", "/v1/history")) as HistoryReport;
  }

  /** Removes the cache entries of one name, or of all. */
  async flushCache(name?: string): Promise<FlushReport> {
    return (await this.#call("POST", "/v1/cache/flush", { name })) as FlushReport;
  }

  /** Reloads the settings file; returns what changed. */
  async reload(): Promise<ReloadReport> {
    return (await this.#call("POST", "/v1/reload", undefined, QUERY_TIMEOUT_MS)) as ReloadReport;
  }

  async #call(method: string, path: string, body?: unknown, timeoutMs = TIMEOUT_MS): Promise<unknown> {
    const answer = await this.#open(method, path, body, timeoutMs);
    const value = await this.#bodyOf(answer);
    if (answer.statusCode === 200) return value;
    throw this.#errorOf(answer, value);
  }

  /** The parsed body; null if it is empty. */
  async #bodyOf(answer: IncomingMessage): Promise<unknown> {
    let text;
    try {
      text = await textOf(answer);
    } catch (cause) {
      if (this.#closed?.aborted === true) throw closedFault();
      throw new Fault("CONTROL", `dns11 at "${this.#path}" stopped before it responded`, { cause });
    }
    try {
      return JSON.parse(text || "null");
    } catch (cause) {
      throw new Fault("CONTROL", `Invalid response from "${this.#path}": not dns11, or an incompatible version`, {
        cause,
      });
    }
  }

  async #open(method: string, path: string, body?: unknown, timeoutMs = TIMEOUT_MS): Promise<IncomingMessage> {
    try {
      return await openUnix(this.#path, path, { method, body, timeoutMs, signal: this.#closed });
    } catch (error) {
      throw this.#fault(error);
    }
  }

  #errorOf({ statusCode }: IncomingMessage, value: unknown): Fault {
    const { error, code, remedy } = (value ?? {}) as {
      readonly error?: string;
      readonly code?: string;
      readonly remedy?: string;
    };
    const message = error ?? `dns11 at "${this.#path}" responded with status ${statusCode}`;
    return new Fault(code ?? "CONTROL", message, remedy === undefined ? {} : { remedy });
  }

  #fault(cause: unknown): Fault {
    if (this.#closed?.aborted === true) return closedFault();
    const code = codeOf(cause);
    if (code === "ENOENT" || code === "ECONNREFUSED") {
      return new Fault("NOT_RUNNING", `dns11 is not running for this engine (nothing listens at "${this.#path}")`, {
        remedy: startRemedy("dns11 run"),
      });
    }
    const isDenied = code === "EACCES";
    return new Fault(isDenied ? "CONTROL_PERMISSION" : "CONTROL", `Cannot connect to dns11 at "${this.#path}"`, {
      cause,
      ...(isDenied && { remedy: "Run the command as root or as a member of the group docker." }),
    });
  }
}

function closedFault(): Fault {
  return new Fault("CLOSED", "The client is closed");
}

function parametersOf(filter: object): string {
  const parameters = Object.entries(filter).filter(([, value]) => value !== undefined);
  return new URLSearchParams(parameters.map(([key, value]): [string, string] => [key, String(value)])).toString();
}
