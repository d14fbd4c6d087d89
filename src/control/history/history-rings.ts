/**
 * HistoryRings: the last five minutes as samples, and the last day by the minute: how many queries containers sent and how they were answered, and the state and
 * response time of each server. A sample reads counters that exist anyway; the answering code does not know of it.
 */
import type { HistoryReport, RateHistory, ServerHistory, MinuteHistory } from "../../api/history.ts";
import { guard } from "../../base/lib/guard.ts";
import { inSlices } from "../../base/lib/slices.ts";
import { LIMITS } from "../../base/limits.ts";
import { serverText } from "../../base/model/server-text.ts";
import type { Nameserver } from "../../query/upstream/nameserver.ts";
import type { Clients } from "../../query/client/clients.ts";
import type { NameserverPool } from "../../query/upstream/nameserver-pool.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import { setTimeout as sleep } from "node:timers/promises";
import type { EventKind, EventReport, EventsReport } from "../../api/events.ts";

const MINUTE_MS = 60_000;

type Rate = keyof RateHistory;
type Counters = Readonly<Record<string, number>>;

const RATES: readonly Rate[] = ["queries", "local", "cached", "forwarded", "nxdomain", "errors"];

interface HistoryPorts {
  readonly containers: {
    readonly facts: ReadonlyMap<string, ContainerFact>;
    readonly clients: Pick<Clients, "of">;
  };
  readonly resolver: () => {
    readonly upstreamState:
      | { readonly pool: Pick<NameserverPool, "hostNameservers" | "nameserversOf">; readonly now: () => number }
      | undefined;
  };
}

/** A server's samples, and its query counter at the last one. */
interface ServerRing {
  readonly server: string;
  readonly container: string | null;
  readonly states: ServerHistory["states"][number][];
  readonly rttMs: (number | null)[];
  readonly queries: number[];
  counted: number;
}

interface Reading {
  readonly key: string;
  readonly server: string;
  readonly container: string | null;
  readonly isUp: boolean;
  readonly rttMs: number | undefined;
  readonly queries: number;
}

export class HistoryRings {
  readonly #ports: HistoryPorts;
  readonly #rates = Object.fromEntries(RATES.map((rate) => [rate, [] as number[]])) as Record<Rate, number[]>;
  /** What each container had counted at the last sample. */
  readonly #counted = new WeakMap<object, Counters>();
  readonly #minutes = new MinuteRing();
  readonly #servers = new Map<string, ServerRing>();
  #omitted = 0;
  #untilMs: number | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isSampling = false;

  constructor(ports: HistoryPorts) {
    this.#ports = ports;
  }

  begin(): void {
    this.#timer = setInterval(() => void this.sample(), LIMITS.historyEveryMs).unref();
  }

  end(): void {
    clearInterval(this.#timer);
  }

  /** Reads the counters of the containers in slices. */
  async sample(): Promise<void> {
    if (this.#isSampling) return;
    this.#isSampling = true;
    try {
      const grown = Object.fromEntries(RATES.map((rate) => [rate, 0])) as Record<Rate, number>;
      const readings = new Map<string, Reading>();
      await inSlices(this.#counting(grown));
      await inSlices(this.#reading(readings));
      for (const rate of RATES) push(this.#rates[rate], grown[rate]);
      this.#sampleServers(readings);
      this.#untilMs = Date.now();
      this.#minutes.add(this.#untilMs, grown.queries, grown.nxdomain + grown.errors);
    } catch (error) {
      guard.report(error, "timer");
    } finally {
      this.#isSampling = false;
    }
  }

  report(): HistoryReport {
    return {
      everyMs: LIMITS.historyEveryMs,
      until: this.#untilMs === undefined ? null : new Date(this.#untilMs).toISOString(),
      // Copies: the next sample may come before all of it is written.
      rates: structuredClone(this.#rates),
      minutes: this.#minutes.report(),
      servers: [...this.#servers.values()].map(({ server, container, states, rttMs, queries }) => {
        return { server, container, states: [...states], rttMs: [...rttMs], queries: [...queries] };
      }),
      omitted: this.#omitted,
    };
  }

  *#counting(grown: Record<Rate, number>): Generator<void> {
    for (const id of [...this.#ports.containers.facts.keys()]) {
      yield;
      const client = this.#ports.containers.clients.of(id);
      if (client === undefined) continue;
      client.collect();
      const counters: Counters = client.counters;
      // A new client counts from 0.
      const before = this.#counted.get(client) ?? {};
      for (const rate of RATES) grown[rate] += (counters[rate] ?? 0) - (before[rate] ?? 0);
      this.#counted.set(client, { ...counters });
    }
  }

  #sampleServers(readings: ReadonlyMap<string, Reading>): void {
    this.#omitted = 0;
    for (const reading of readings.values()) {
      const { key, server, container } = reading;
      if (this.#servers.has(key)) continue;
      if (this.#servers.size >= LIMITS.historyServers) this.#omitted++;
      else this.#servers.set(key, this.#newRing(server, container));
    }
    for (const [key, ring] of this.#servers) {
      const reading = readings.get(key);
      push(ring.states, reading === undefined ? null : reading.isUp ? "up" : "down");
      push(ring.rttMs, reading?.rttMs === undefined ? null : Math.round(reading.rttMs * 100) / 100);
      const queries = reading?.queries ?? 0;
      // Changed settings begin with new counters.
      push(ring.queries, queries >= ring.counted ? queries - ring.counted : queries);
      ring.counted = queries;
      if (ring.states.every((state) => state === null)) this.#servers.delete(key);
    }
  }

  /** Makes a ring as if it had been there, without samples. */
  #newRing(server: string, container: string | null): ServerRing {
    const past = Math.max(0, this.#rates.queries.length - 1);
    const nothing = Array.from({ length: past }, () => null);
    return { server, container, states: nothing, rttMs: [...nothing], queries: nothing.map(() => 0), counted: 0 };
  }

  /** The host's servers first, so that containers with many servers do not displace them. */
  *#reading(readings: Map<string, Reading>): Generator<void> {
    const { upstreamState } = this.#ports.resolver();
    if (upstreamState === undefined) return;
    const { pool, now } = upstreamState;
    const add = ({ server, health }: Nameserver, container: string | null): void => {
      const text = serverText(server);
      const key = `${text} ${container ?? ""}`;
      const isUp = !health.checkIsDown(now());
      const other = readings.get(key);
      readings.set(key, {
        key,
        server: text,
        container,
        isUp: isUp || other?.isUp === true,
        rttMs: health.rttMs ?? other?.rttMs,
        queries: health.counters.queries + (other?.queries ?? 0),
      });
    };
    for (const nameserver of pool.hostNameservers) add(nameserver, null);
    for (const { id, name } of [...this.#ports.containers.facts.values()]) {
      yield;
      const client = this.#ports.containers.clients.of(id);
      if (client === undefined) continue;
      for (const nameserver of pool.nameserversOf(client)) add(nameserver, name);
    }
  }
}

function push<T>(ring: T[], value: T): void {
  ring.push(value);
  if (ring.length > LIMITS.historySamples) ring.shift();
}

/**
 * How many queries containers sent in each minute, and how many of them failed, for a day. A minute without a sample, as when
 * the machine sleeps, has none.
 */
export class MinuteRing {
  readonly #queries: number[] = [];
  readonly #failures: number[] = [];
  /** The number of the last minute since 1970. */
  #last: number | undefined;

  /** A clock that is set back adds to the last minute until it has caught up. */
  add(nowMs: number, queries: number, failures: number): void {
    const minute = Math.floor(nowMs / MINUTE_MS);
    const before = this.#last ?? minute - 1;
    // After a longer gap nothing of before is left.
    for (let count = Math.min(minute - before, LIMITS.historyMinutes); count > 0; count--) this.#begin();
    this.#last = Math.max(minute, before);
    this.#queries.push((this.#queries.pop() ?? 0) + queries);
    this.#failures.push((this.#failures.pop() ?? 0) + failures);
  }

  report(): MinuteHistory {
    const until = this.#last === undefined ? null : new Date((this.#last + 1) * MINUTE_MS).toISOString();
    return { until, queries: [...this.#queries], failures: [...this.#failures] };
  }

  #begin(): void {
    for (const ring of [this.#queries, this.#failures]) {
      ring.push(0);
      if (ring.length > LIMITS.historyMinutes) ring.shift();
    }
  }
}

export type NewEvent = { readonly kind: EventKind } & Partial<Omit<EventReport, "kind" | "number" | "time">>;

const NOTHING = {
  container: null,
  containerId: null,
  project: null,
  service: null,
  network: null,
  server: null,
  detail: null,
  exitCode: null,
};
const DETAIL_CHARS_MAX = 500;
/** How often followers are sent what is new. */
const POLL_MS = 250;

/**
 * The last events of a run, for people who look at what happened. When it is full, the container or server with the
 * most events loses its oldest one, so that one that starts again and again does not displace what happened to others.
 */
export class EventRing {
  /** By number, the oldest first. */
  readonly #events = new Map<number, EventReport>();
  /** The numbers of each subject's events. */
  readonly #numbersOf = new Map<string, number[]>();
  /**
   * The subjects by how many events they have, in the order in which they got so many. Looking for the one with the most would
   * cost a twentieth of an attach.
   */
  readonly #byCount: Set<string>[] = [];
  #last = 0;

  record(event: NewEvent): void {
    if (this.#events.size >= LIMITS.events) this.#drop();
    const detail = event.detail?.slice(0, DETAIL_CHARS_MAX) ?? null;
    const recorded = { ...NOTHING, ...event, detail, number: ++this.#last, time: new Date().toISOString() };
    this.#events.set(recorded.number, recorded);
    const subject = subjectOf(recorded);
    const numbers = this.#numbersOf.get(subject) ?? [];
    this.#byCount[numbers.length]?.delete(subject);
    numbers.push(recorded.number);
    this.#numbersOf.set(subject, numbers);
    this.#count(subject, numbers.length);
  }

  /** The last `limit` events after the number `since`. */
  read(limit: number, since = 0): EventsReport {
    const wanted = this.#after(since);
    const events = limit === 0 ? [] : wanted.slice(-limit);
    return { events, missed: Math.max(0, this.#last - since) - events.length, last: this.#last };
  }

  /** The last `limit` events, then each as it happens, until `signal`. */
  async *follow(limit: number, signal: AbortSignal): AsyncGenerator<EventReport, void> {
    let last = this.#last;
    yield* this.read(limit).events;
    while (!signal.aborted) {
      const fresh = this.#after(last);
      last = this.#last;
      yield* fresh;
      await sleep(POLL_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  #after(number: number): EventReport[] {
    return [...this.#events.values()].filter((event) => event.number > number);
  }

  /** Drops the oldest event of the subject with the most; of several, of the one that got so many first. */
  #drop(): void {
    while (this.#byCount.at(-1)?.size === 0) this.#byCount.pop();
    const subjects = this.#byCount.at(-1);
    const [subject] = subjects ?? [];
    const numbers = subject === undefined ? undefined : this.#numbersOf.get(subject);
    const oldest = numbers?.shift();
    if (subject === undefined || numbers === undefined || oldest === undefined) return;
    this.#events.delete(oldest);
    subjects?.delete(subject);
    if (numbers.length === 0) this.#numbersOf.delete(subject);
    else this.#count(subject, numbers.length);
  }

  #count(subject: string, count: number): void {
    while (this.#byCount.length <= count) this.#byCount.push(new Set());
    this.#byCount[count]?.add(subject);
  }
}

function subjectOf({ containerId, server, network }: EventReport): string {
  return containerId ?? server ?? network ?? "";
}
