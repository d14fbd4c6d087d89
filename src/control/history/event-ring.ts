/**
 * EventRing: the last events of a run, for people who look at what happened. When it is full, the container or server with the
 * most events loses its oldest one, so that one that starts again and again does not displace what happened to others.
 */
import { setTimeout as sleep } from "node:timers/promises";

import type { EventKind, EventReport, EventsReport } from "../../api/events.ts";
import { LIMITS } from "../../base/limits.ts";

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
