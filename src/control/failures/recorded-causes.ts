/**
 * RecordedCauses: why a name failed, by the facts of that moment. Servers come back and containers are removed, so a cause that is
 * found out when somebody reads it may be of something else. Failures are recorded on the query path, which knows no causes:
 * this looks at what has been added, a few times a second.
 *
 * Each cause is about a kilobyte. There are as many as there is room for; a container's own share keeps the others'.
 */
import { setImmediate as turn } from "node:timers/promises";
import { type Cause, type CauseCode, PASSING } from "../../api/causes.ts";
import type { EarlierReason } from "../../api/failures.ts";
import { guard } from "../../base/lib/guard.ts";
import { LIMITS } from "../../base/limits.ts";
import { RCODE, rcodeName } from "../../base/dns/rcode.ts";
import type { FailureRecord } from "../../base/model/query-record.ts";
import type { FailureTable } from "../../query/failures/failure-table.ts";
import type { CauseMemory, ControlPorts, Containers, RecordedCause } from "../situation/ports.ts";
import { Situations } from "../situation/situations.ts";
import { typeName } from "../../base/dns/record-type.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import { causesOf } from "../causes/causes.ts";
import { namespaceOwner } from "../situation/find-container.ts";

type Ports = Pick<ControlPorts, "containers" | "resolver" | "inside" | "failures" | "histories" | "settingsFile">;

/** The time until the next look is so many times as long as a look took. */
const REST_SHARE = 9;

type FindCause = (table: FailureTable, record: FailureRecord) => Cause | null;

export class RecordedCauses implements CauseMemory {
  readonly #tables: () => Iterable<FailureTable>;
  readonly #open: () => Promise<FindCause>;
  readonly #now: () => number;
  /** The keys are the container, the one whose failure was recorded last at the end, and the failure. */
  readonly #containers = new Map<string, Map<string, RecordedCause>>();
  #count = 0;
  readonly #seen = new WeakMap<FailureTable, { lastMs: number; isSettled: boolean }>();
  /** The container to begin with. */
  #nextId: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isLooking = false;
  /** With very many containers a look takes long, however little it looks at. */
  #restUntilMs = -Infinity;

  /** `open` collects what causes are derived from, for one look. */
  constructor(
    tables: () => Iterable<FailureTable>,
    open: () => Promise<FindCause>,
    now: () => number = () => performance.now(),
  ) {
    this.#tables = tables;
    this.#open = open;
    this.#now = now;
  }

  static of(ports: Ports): RecordedCauses {
    return new RecordedCauses(
      () => ports.failures.tables(),
      async () => {
        // What the look before has needed.
        await ports.inside.composeFiles?.learn();
        const situations = await Situations.open(ports);
        return (table, record) => failureCause(ports, table, record, situations);
      },
    );
  }

  get count(): number {
    return this.#count;
  }

  begin(): void {
    this.#timer = setInterval(() => void this.#tick(), LIMITS.causesEveryMs).unref();
  }

  end(): void {
    clearInterval(this.#timer);
  }

  /** The cause that a failure had when it happened last; undefined if that is not known. */
  of({ containerId }: FailureTable, record: FailureRecord): RecordedCause | undefined {
    return this.#containers.get(containerId)?.get(keyOf(record));
  }

  /**
   * Finds out the causes of what has failed since the last time. A container chooses what it looks up, and so how long that takes:
   * of each a few at a time, until the time of this look is used up; the next one goes on with the container after it.
   */
  async look(): Promise<void> {
    let find: FindCause | undefined;
    let spentMs = 0;
    for (const table of this.#inTurn()) {
      if (spentMs >= LIMITS.causesMs) {
        this.#nextId = table.containerId;
        return;
      }
      const look = this.#lookAt(table);
      if (look === undefined) continue;
      const wanted = [...table.records()].filter((record) => this.#isWanted(table, record, look));
      for (const record of wanted.toSorted((a, b) => b.lastMs - a.lastMs).slice(0, LIMITS.causesAtOnce)) {
        find ??= await this.#open();
        // Meanwhile a reader may have noted its cause, and the servers may be back.
        if (!this.#isWanted(table, record, look)) continue;
        const beganMs = this.#now();
        this.note(table, record, find(table, record));
        spentMs += this.#now() - beganMs;
        // Let pending queries run first.
        await turn();
      }
    }
    this.#nextId = undefined;
  }

  #inTurn(): FailureTable[] {
    const tables = [...this.#tables()];
    const first = tables.findIndex(({ containerId }) => containerId === this.#nextId);
    return first <= 0 ? tables : [...tables.slice(first), ...tables.slice(0, first)];
  }

  note({ containerId }: FailureTable, record: FailureRecord, cause: Cause | null): void {
    const own = this.#containers.get(containerId) ?? new Map<string, RecordedCause>();
    this.#containers.delete(containerId);
    this.#containers.set(containerId, own);
    const key = keyOf(record);
    if (own.delete(key)) this.#count--;
    own.set(key, { cause, atMs: this.#now() });
    this.#count++;
    if (own.size > LIMITS.causesPerContainer) this.#forgetFirst(own);
    while (this.#count > LIMITS.recordedCauses) {
      const [oldest] = this.#containers;
      if (oldest === undefined) break;
      this.#forgetFirst(oldest[1]);
      if (oldest[1].size === 0) this.#containers.delete(oldest[0]);
    }
  }

  #forgetFirst(own: Map<string, RecordedCause>): void {
    const [first] = own.keys();
    if (first !== undefined && own.delete(first)) this.#count--;
  }

  /**
   * "some" while names fail: one that fails all the time is looked at now and then. "last" once after that, because servers are
   * known to be down only after some failures. undefined: nothing has happened.
   */
  #lookAt(table: FailureTable): "some" | "last" | undefined {
    const { lastMs } = table;
    const seen = this.#seen.get(table) ?? { lastMs: -1, isSettled: true };
    const hasFailed = lastMs > seen.lastMs;
    this.#seen.set(table, { lastMs, isSettled: !hasFailed });
    if (hasFailed) return "some";
    return seen.isSettled ? undefined : "last";
  }

  /** What no server knows has one cause, and it stays. */
  #isWanted(table: FailureTable, record: FailureRecord, look: "some" | "last"): boolean {
    if (record.name === null || (!record.isLocal && record.rcode === RCODE.NXDOMAIN)) return false;
    const known = this.of(table, record);
    if (look === "last") return isFresh(record, known, this.#now());
    return known === undefined || record.lastMs - known.atMs > LIMITS.causeAgainMs;
  }

  async #tick(): Promise<void> {
    const beganMs = this.#now();
    if (this.#isLooking || beganMs < this.#restUntilMs) return;
    this.#isLooking = true;
    try {
      await this.look();
    } catch (error) {
      guard.report(error, "control");
    } finally {
      this.#isLooking = false;
      const nowMs = this.#now();
      this.#restUntilMs = nowMs + (nowMs - beganMs) * REST_SHARE;
    }
  }
}

function keyOf({ name, type, rcode }: FailureRecord): string {
  return `${type} ${rcode} ${name ?? ""}`;
}

/** null if names are hidden, or the container has ended. */
export function failureCause(
  { containers: { facts } }: { readonly containers: Pick<Containers, "facts"> },
  { containerId }: FailureTable,
  record: FailureRecord,
  situations: Situations,
): Cause | null {
  const fact = facts.get(containerId);
  const { name } = record;
  if (name === null || fact === undefined) return null;
  const [first = null] = causesOf(
    situations.of(fact, ownerOf(facts, fact), {
      name,
      typeName: typeName(record.type),
      failure: resultOf(record),
      isFromUpstream: false,
      isTruncated: false,
    }),
  );
  return first;
}

export function resultOf({ rcode }: FailureRecord): string {
  return rcode === 0 ? "NODATA" : rcodeName(rcode);
}

export function ownerOf(facts: ReadonlyMap<string, ContainerFact>, fact: ContainerFact): ContainerFact {
  try {
    return namespaceOwner(facts, fact);
  } catch {
    // Its owner has ended, so it will, too.
    return fact;
  }
}

export interface Judged {
  readonly cause: Cause | null;
  readonly earlier: EarlierReason | undefined;
}

/** What is known of a failure. */
interface KnownFailure {
  readonly present: Cause | null;
  readonly recorded: RecordedCause | undefined;
  /** The container that has queried the name. */
  readonly isRunning: boolean;
  readonly nowMs: number;
}

/** Guesses, until servers are known to be down, which takes some failures, or their late replies have come. */
const GUESSES: ReadonlySet<CauseCode | undefined> = new Set(["upstream-error", "upstream-slow"]);

/** Whether the failure was a moment ago, and nothing better is recorded of it than what is known now. */
export function isFresh({ lastMs }: FailureRecord, recorded: RecordedCause | undefined, nowMs: number): boolean {
  if (nowMs - lastMs >= LIMITS.causeAgainMs) return false;
  return recorded === undefined || lastMs > recorded.atMs || GUESSES.has(recorded.cause?.code);
}

/**
 * Whether a failure still counts, and which of two causes is shown: the one of its moment, or the one by what is known now. What is
 * certain now is of more use; what has become a guess since is not.
 */
export function judge(record: FailureRecord, { present, recorded, isRunning, nowMs }: KnownFailure): Judged {
  const { lastMs, successMs } = record;
  const isOver = !isRunning || present?.code === "resolves-now";
  const then = recorded?.cause ?? null;
  // Its replies have come since, too late.
  const isDisproved = present?.code === "upstream-slow" && then?.code === "upstreams-down";
  const isPresent =
    then === null || isDisproved || (!isOver && (isFresh(record, recorded, nowMs) || present?.isBreaking === true));
  const isSame = present !== null && present.code === then?.code;
  const cause = isPresent || isSame ? present : then;
  const hasPassed = !isPresent && !isSame && PASSING.has(then.code);
  return { cause, earlier: earlierOf() };

  function earlierOf(): EarlierReason | undefined {
    if (!isRunning) return "ended";
    if (successMs !== undefined && successMs >= lastMs) return "resolved";
    if (isOver || hasPassed) return "recovered";
    return nowMs - lastMs > LIMITS.failureIdleMs ? "idle" : undefined;
  }
}
