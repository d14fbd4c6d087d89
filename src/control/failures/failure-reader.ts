/**
 * FailureReader: reads the failure tables for people and programs, with the cause of each failure. Recording does not know
 * about readers: followers poll.
 */
import { bareName } from "../../base/dns/name.ts";
import { setTimeout as sleep } from "node:timers/promises";

import type { FailureReport, FailuresReport, UnwatchedContainer } from "../../api/failures.ts";
import { typeName } from "../../base/dns/record-type.ts";
import { gatherInSlices } from "../../base/lib/slices.ts";
import type { FailureRecord } from "../../base/model/query-record.ts";
import { failureText } from "../../container/attach/attachment-state.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import type { FailureTable } from "../../query/failures/failure-table.ts";
import type { ComposeFilter } from "../situation/address-owners.ts";
import { clientCause, notServedCause, resolverCauses } from "../causes/client-causes.ts";
import { runningContainer } from "../causes/known-container.ts";
import { misleadingNames } from "./misleading-names.ts";
import type { CauseMemory, ControlPorts } from "../situation/ports.ts";
import { type Judged, RecordedCauses, failureCause, isFresh, judge, ownerOf, resultOf } from "./recorded-causes.ts";
import { Situations, mountedResolvConf, resolversOf } from "../situation/situations.ts";

type Ports = Pick<
  ControlPorts,
  "containers" | "resolver" | "inside" | "failures" | "histories" | "settingsFile" | "recordedCauses"
>;

/** Failures in one response: those that happened last. */
const RETURNED_MAX = 1_000;
/** How often followers are sent what has changed. */
const POLL_MS = 250;

/** Without any field it lets all failures pass. */
interface FailureFilter extends Partial<ComposeFilter> {
  readonly containerId?: string | undefined;
}

export class FailureReader {
  readonly #ports: Ports;
  readonly #recorded: CauseMemory;

  constructor(ports: Ports) {
    this.#ports = ports;
    this.#recorded = ports.recordedCauses ?? RecordedCauses.of(ports);
  }

  /** Reads those of one container, or of all. */
  async read({ containerId, acceptsId }: FailureFilter = {}): Promise<FailuresReport> {
    const isWanted = (id: string): boolean =>
      (containerId === undefined || id === containerId) && acceptsId?.(id) !== false;
    const situations = await Situations.open(this.#ports);
    const tables = [...this.#ports.failures.tables(containerId)].filter((table) => isWanted(table.containerId));
    return await situations.withFiles(async () => {
      const failures = await gatherInSlices(this.#eachReport(tables, situations), 1);
      failures.sort((a, b) => (a.last < b.last ? 1 : -1));
      return {
        failures: failures.slice(0, RETURNED_MAX),
        misleading: await misleadingNames(this.#ports, situations, isWanted),
        // In slices, because of each container a file is read.
        unwatched: await gatherInSlices(eachUnwatched(this.#ports, situations, isWanted)),
        omitted: Math.max(0, failures.length - RETURNED_MAX),
      };
    });
  }

  /** The present failures, then each again whenever it has happened again, until `signal`. */
  async *follow(
    signal: AbortSignal,
    isFollowed: (containerId: string) => boolean,
  ): AsyncGenerator<FailureReport, void> {
    /** The last failure of each table that was looked at. */
    const seenMs = new WeakMap<FailureTable, number>();
    while (!signal.aborted) {
      const changed = [...this.#ports.failures.tables()].filter(
        (table) => isFollowed(table.containerId) && table.lastMs > (seenMs.get(table) ?? -1),
      );
      const situations = changed.length === 0 ? undefined : await Situations.open(this.#ports);
      for (const table of situations === undefined ? [] : changed) {
        const sinceMs = seenMs.get(table) ?? -1;
        seenMs.set(table, table.lastMs);
        const found = this.#reports(table, situations as Situations, ({ lastMs }) => lastMs > sinceMs);
        const reports = await gatherInSlices(found, 1);
        yield* reports.toSorted((a, b) => (a.last < b.last ? -1 : 1));
      }
      await sleep(POLL_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  *#eachReport(tables: readonly FailureTable[], situations: Situations): Generator<FailureReport | undefined> {
    for (const table of tables) yield* this.#reports(table, situations, () => true);
  }

  /** One record after the other: what a container looks up decides how long it takes to find the cause. */
  *#reports(
    table: FailureTable,
    situations: Situations,
    isWanted: (record: FailureRecord) => boolean,
  ): Generator<FailureReport | undefined> {
    const { facts } = this.#ports.containers;
    const fact = facts.get(table.containerId);
    const owner = fact === undefined ? undefined : ownerOf(facts, fact);
    const sharedWith = situations.sharersOf(table.containerId);
    const search = fact === undefined ? [] : searchDomains(situations, fact, owner ?? fact);
    const wallMs = Date.now() - performance.now();
    for (const record of [...table.records()]) {
      // The search list of one that has ended is not known: then the table has seen all that there is.
      const steps = fact === undefined || isInSearch(record, search) ? record.steps : 0;
      const isStep = record.count === steps || (steps > 0 && record.isStepLast && fact !== undefined);
      if (isStep || !isWanted(record)) continue;
      const nowMs = performance.now();
      const present = failureCause(this.#ports, table, record, situations);
      const recorded = this.#recorded.of(table, record);
      if (isFresh(record, recorded, nowMs) && present !== null && present.code !== "resolves-now")
        this.#recorded.note(table, record, present);
      const judged = judge(record, { present, recorded, isRunning: fact !== undefined, nowMs });
      yield report({ ...record, steps }, judged, { table, fact, situations, wallMs, sharedWith });
    }
  }
}

interface ReportContext {
  readonly table: FailureTable;
  readonly fact: ContainerFact | undefined;
  readonly situations: Situations;
  /** The time origin of `performance.now`. */
  readonly wallMs: number;
  readonly sharedWith: readonly string[];
}

function report(
  record: FailureRecord,
  { cause, earlier }: Judged,
  { table, fact, situations, wallMs, sharedWith }: ReportContext,
): FailureReport {
  const { name, count, steps, perMinute, firstMs, lastMs, successMs } = record;
  const known = situations.known.byId(table.containerId);
  const compose = known?.compose;
  const iso = (ms: number): string => new Date(wallMs + ms).toISOString();
  return {
    container: fact?.name ?? table.containerName ?? known?.name ?? table.containerId.slice(0, 12),
    containerId: table.containerId,
    ...(sharedWith.length > 0 && { sharedWith }),
    isRunning: fact !== undefined,
    project: compose?.project ?? null,
    service: compose?.service ?? null,
    name,
    type: typeName(record.type),
    result: resultOf(record),
    count: count - steps,
    perMinute,
    first: iso(firstMs),
    last: iso(lastMs),
    lastSuccess: successMs === undefined ? null : iso(successMs),
    isContainerName:
      cause?.isBreaking === true ||
      isContainerName(record, situations, cause?.code === "no-ipv4" && hasResolved(record, table, situations)),
    cause,
    ...(earlier !== undefined && { earlier }),
  };
}

function hasResolved({ name }: FailureRecord, { containerId }: FailureTable, { answers }: Situations): boolean {
  return name !== null && answers.of(containerId).has(name);
}

/** A name that only lacks an IPv4 address resolves for programs that query both families. */
function isContainerName({ name, isLocal }: FailureRecord, { known }: Situations, onlyLacksIpv4: boolean): boolean {
  if (onlyLacksIpv4) return false;
  return isLocal || (name !== null && known.places(name).length > 0);
}

function searchDomains(situations: Situations, fact: ContainerFact, owner: ContainerFact): readonly string[] {
  const { search = [] } = situations.resolvConfOf(fact, owner) ?? {};
  return search.map((domain) => bareName(domain)).filter((domain) => domain !== "");
}

/** It may have failed as a step through the search list of a lookup that then succeeded. */
function isInSearch({ name }: FailureRecord, search: readonly string[]): boolean {
  if (name === null || search.length === 0) return false;
  return !name.includes(".") || search.some((domain) => name.endsWith(`.${domain}`));
}

/**
 * Containers that have container names but whose queries do not reach dns11: it is not asked, or their programs end before they have
 * asked, over and over. Their failures are in no table, so that a report without them would be wrong by silence.
 */
function* eachUnwatched(
  { containers }: Pick<ControlPorts, "containers">,
  situations: Situations,
  isWanted: (containerId: string) => boolean,
): Generator<UnwatchedContainer | undefined> {
  for (const container of situations.known.all) {
    yield undefined;
    const isInLoop = container.ended === undefined || container.ended.state === "restarting";
    if (!isInLoop || !isWanted(container.id)) continue;
    const broken = clientCause(container, situations.known, Date.now());
    if (broken !== undefined) yield { container: container.name, cause: broken };
  }
  for (const fact of [...containers.facts.values()]) {
    yield undefined;
    if (!isWanted(fact.id)) continue;
    const decision = containers.decisionOf(fact.id);
    const state = containers.attachmentOf(fact.id)?.state;
    const reason =
      decision?.kind === "skip"
        ? decision.code === "quarantined" && decision.reason
        : state?.kind === "failed" && failureText(state);
    if (typeof reason === "string") yield { container: fact.name, cause: notServedCause(fact, reason) };
    // Others are not to be served.
    if (decision?.kind !== "serve" || state?.kind !== "attached") continue;
    // It has a resolv.conf that dns11 itself has changed.
    if (containers.ofFeatures.status(fact.id).node !== undefined) continue;
    const resolvConf = situations.resolvConfOf(fact, fact);
    const mounted = mountedResolvConf(fact, fact);
    const client = runningContainer(fact);
    const resolvers = resolversOf(fact);
    const [first] = resolverCauses({ client, mountedResolvConf: mounted, resolvConf, resolvers });
    // One whose queries arrive has mounted a file that lists dns11's address.
    const isSeen = mounted !== undefined && (containers.attachmentOf(fact.id)?.endpoint?.counters["queries"] ?? 0) > 0;
    if (first !== undefined && !isSeen) yield { container: fact.name, cause: first };
  }
}
