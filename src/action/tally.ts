/**
 * Tally: what was queried and what failed during a job, in memory that no container can exhaust. A container that is removed
 * in the meantime stays in it. Each bound says what is left out, so that a summary never looks complete when it is not.
 */
import type { FailureReport } from "../api/failures.ts";
import type { QueryReport } from "../api/queries.ts";

/** More are in no job that somebody reads the summary of. */
export const CONTAINERS_MAX = 200;
/** A container that queries random names has no more than these. */
export const NAMES_MAX = 200;
export const FAILURES_MAX = 500;
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

export interface JobRecord {
  readonly failures: readonly FailureReport[];
  /** Failures beyond the bound. */
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

interface MutableContainer {
  readonly names: Map<string | null, MutableName>;
  others: number;
  lastSeq: number;
}

export class Tally {
  readonly #containers = new Map<string, MutableContainer>();
  readonly #failures = new Map<string, FailureReport>();
  #omittedFailures = 0;
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
    if (known === undefined && this.#failures.size >= FAILURES_MAX) this.#omittedFailures += 1;
    // The cause is no longer known when the container is gone.
    else this.#failures.set(key, { ...failure, cause: failure.cause ?? known?.cause ?? null });
  }

  record(endedEarly: string | null): JobRecord {
    return {
      failures: [...this.#failures.values()],
      omittedFailures: this.#omittedFailures,
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

  #container(name: string): MutableContainer | undefined {
    const known = this.#containers.get(name);
    if (known !== undefined || this.#containers.size >= CONTAINERS_MAX) return known;
    const made = { names: new Map<string | null, MutableName>(), others: 0, lastSeq: 0 };
    this.#containers.set(name, made);
    return made;
  }
}

function answerOf({ rcode, owners = [], addresses, upstream, answers }: QueryReport): string {
  if (rcode !== "NOERROR") return rcode;
  const containers = [...new Set(owners.map(({ container }) => container))];
  if (containers.length > 0) return containers.join(", ");
  if (answers === 0) return "no records";
  const from = upstream === null ? "" : ` from ${upstream}`;
  return `${addresses.join(", ") || "records"}${from}`;
}
