/**
 * Tally: what was queried and what failed during a job, in memory that no container can exhaust. A container that is removed
 * in the meantime stays in it. Each bound says what is left out, so that a summary never looks complete when it is not.
 */
import type { FailureReport } from "../api/failures.ts";
import type { PolicyContainer, PolicyRefusal } from "../api/policies.ts";
import type { QueryReport } from "../api/queries.ts";

/** More are in no job that somebody reads the summary of. */
export const CONTAINERS_MAX = 200;
/** A container that queries random names has no more than these. */
export const NAMES_MAX = 200;
export const FAILURES_MAX = 500;
/** Refused names of all containers, and of one. */
export const REFUSALS_MAX = 2_000;
export const REFUSALS_OF_ONE_MAX = 200;
export const PROBLEMS_MAX = 20;
/** Failures and refusals beyond the bounds that are told apart, so that one that comes again is counted once. */
const OMITTED_MAX = 10_000;
/** The longest name of DNS, with each byte as \DDD. */
const NAME_LENGTH_MAX = 1020;

interface AskedName {
  /** null if names are hidden. */
  readonly name: string | null;
  readonly queries: number;
  /** Answers other than NOERROR, and none. */
  readonly failed: number;
  /** The container or server that the last answer came from; empty if it says nothing. */
  readonly answer: string;
}

export interface AskingContainer {
  readonly container: string;
  readonly names: readonly AskedName[];
  /** Queries for further names. */
  readonly others: number;
}

/** What a policy has refused, or would have. */
export interface RefusedName {
  readonly container: string;
  /** null if names are hidden; of a connection where it went to, as in 192.0.2.1:443/tcp. */
  readonly name: string | null;
  readonly isConnection: boolean;
  readonly policy: string;
  /** Otherwise it was only recorded. */
  readonly isEnforced: boolean;
  /** A word, as in the log of policies. */
  readonly reason: string;
  /** The rule, or what takes its place, with file and line. */
  readonly because: string;
  /** null if nobody has counted. */
  readonly count: number | null;
}

interface PolicyProblem {
  readonly container: string;
  readonly problem: string;
}

export interface JobRecord {
  /** The job has policies. */
  readonly isPoliced: boolean;
  readonly refused: readonly RefusedName[];
  /** Refusals beyond the bounds, as far as they are counted. */
  readonly omittedRefusals: number;
  /** Why policies did not hold containers that ran at the end. */
  readonly problems: readonly PolicyProblem[];
  readonly failures: readonly FailureReport[];
  /** Failures beyond the bound, as far as they are counted. */
  readonly omittedFailures: number;
  readonly asked: readonly AskingContainer[];
  /** Queries of further containers. */
  readonly ofOtherContainers: number;
  /** Queries that came too fast to be recorded. */
  readonly missed: number;
  /** Why it ends before the job did; null if it does not. */
  readonly endedEarly: string | null;
}

interface MutableName {
  queries: number;
  failed: number;
  answer: string;
}

/** The log of policies counts anew in another entry. */
interface MutableRefusal {
  readonly containerId: string;
  readonly refusal: Omit<RefusedName, "count">;
  number: number;
  before: number;
  latest: number | null;
}

interface MutableContainer {
  readonly names: Map<string | null, MutableName>;
  others: number;
  lastSeq: number;
}

export class Tally {
  readonly #containers = new Map<string, MutableContainer>();
  readonly #failures = new Map<string, FailureReport>();
  readonly #refusals = new Map<string, MutableRefusal>();
  readonly #refusalsOf = new Map<string, number>();
  readonly #names = new Map<string, string>();
  #problems: readonly PolicyProblem[] = [];
  #isPoliced = false;
  readonly #omittedRefusals = new Set<string>();
  readonly #omittedFailures = new Set<string>();
  #ofOtherContainers = 0;
  #missed = 0;

  addMissed(count: number): void {
    this.#missed += count;
  }

  addQuery(query: QueryReport): void {
    const container = this.#container(query.container);
    if (container === undefined) {
      this.#ofOtherContainers += 1;
      return;
    }
    container.lastSeq = query.seq;
    const name = query.name === null ? null : query.name.slice(0, NAME_LENGTH_MAX);
    let asked = container.names.get(name);
    if (asked === undefined) {
      if (container.names.size >= NAMES_MAX) {
        container.others += 1;
        return;
      }
      asked = { queries: 0, failed: 0, answer: "" };
      container.names.set(name, asked);
    }
    asked.queries += 1;
    if (query.rcode !== "NOERROR") asked.failed += 1;
    asked.answer = answerOf(query);
  }

  /** A query that was recorded, and that a reader of the stream has not seen yet. */
  addRecorded(query: QueryReport): void {
    const seen = this.#containers.get(query.container)?.lastSeq ?? 0;
    if (query.seq > seen) this.addQuery(query);
  }

  /** The same failure again has a higher count. */
  addFailure(failure: FailureReport): void {
    const key = JSON.stringify([failure.containerId, failure.name, failure.type, failure.result]);
    const known = this.#failures.get(key);
    if (this.#names.size < FAILURES_MAX) this.#names.set(failure.containerId, failure.container);
    if (known === undefined && this.#failures.size >= FAILURES_MAX) omit(this.#omittedFailures, key);
    // The cause is no longer known when the container is gone.
    else this.#failures.set(key, { ...failure, cause: failure.cause ?? known?.cause ?? null });
  }

  /** The same entry again has a higher count. */
  addRefusal(entry: PolicyRefusal): void {
    const { container, containerId, policy, reason, because, verdict, number, count } = entry;
    const name = entry.name?.slice(0, NAME_LENGTH_MAX) ?? null;
    const known = this.#refusal(JSON.stringify([containerId, name, entry.type, because]), containerId, () => {
      return { container, name, isConnection: false, policy, isEnforced: verdict === "refused", reason, because };
    });
    if (known === undefined || number < known.number) return;
    if (number > known.number) known.before += known.latest ?? 0;
    known.number = number;
    known.latest = count;
  }

  /** Of the containers that run at the end: what no log has. */
  addPolicies(containers: readonly PolicyContainer[]): void {
    this.#isPoliced = true;
    for (const { container, containerId, addresses, mode, policies } of containers) {
      const policy = policies.map(({ name }) => name).join(", ");
      for (const name of addresses?.refused ?? [])
        this.#refusal(JSON.stringify([containerId, name]), containerId, () => {
          const isEnforced = mode === "enforce";
          return { container, name, isConnection: true, policy, isEnforced, reason: "not-allowed", because: "" };
        });
    }
    const all = containers.flatMap(({ container, problems }) => problems.map((problem) => ({ container, problem })));
    this.#problems = all.slice(0, PROBLEMS_MAX);
  }

  record(endedEarly: string | null): JobRecord {
    return {
      isPoliced: this.#isPoliced,
      refused: [...this.#refusals.values()].map(({ containerId, refusal, before, latest }) => ({
        ...refusal,
        // Of a container that is gone, the log of policies has its ID.
        container: this.#names.get(containerId) ?? refusal.container,
        count: latest === null ? null : before + latest,
      })),
      omittedRefusals: this.#omittedRefusals.size,
      problems: this.#problems,
      failures: [...this.#failures.values()],
      omittedFailures: this.#omittedFailures.size,
      asked: [...this.#containers].map(([container, { names, others }]) => ({
        container,
        names: [...names].map(([name, asked]) => ({ name, ...asked })),
        others,
      })),
      ofOtherContainers: this.#ofOtherContainers,
      missed: this.#missed,
      endedEarly,
    };
  }

  /** Undefined if it is one too many. */
  #refusal(key: string, containerId: string, make: () => MutableRefusal["refusal"]): MutableRefusal | undefined {
    const known = this.#refusals.get(key);
    if (known !== undefined) return known;
    const own = this.#refusalsOf.get(containerId) ?? 0;
    if (this.#refusals.size >= REFUSALS_MAX || own >= REFUSALS_OF_ONE_MAX) {
      omit(this.#omittedRefusals, key);
      return undefined;
    }
    const made = { containerId, refusal: make(), number: 0, before: 0, latest: null };
    this.#refusals.set(key, made);
    this.#refusalsOf.set(containerId, own + 1);
    return made;
  }

  #container(name: string): MutableContainer | undefined {
    const known = this.#containers.get(name);
    if (known !== undefined || this.#containers.size >= CONTAINERS_MAX) return known;
    const made = { names: new Map<string | null, MutableName>(), others: 0, lastSeq: 0 };
    this.#containers.set(name, made);
    return made;
  }
}

function omit(omitted: Set<string>, key: string): void {
  if (omitted.size < OMITTED_MAX) omitted.add(key);
}

function answerOf({ rcode, owners = [], addresses, upstream, answers }: QueryReport): string {
  if (rcode !== "NOERROR") return rcode;
  const containers = [...new Set(owners.map(({ container }) => container))];
  if (containers.length > 0) return containers.join(", ");
  if (answers === 0) return "no records";
  const from = upstream === null ? "" : ` from ${upstream}`;
  return `${addresses.join(", ") || "records"}${from}`;
}
