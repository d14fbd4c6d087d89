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
  /** The numbers of each subject's events: to look through all events for each new one would cost a tenth of an attach. */
  readonly #numbersOf = new Map<string, number[]>();
  #last = 0;

  record(event: NewEvent): void {
    if (this.#events.size >= LIMITS.events) this.#drop();
    const detail = event.detail?.slice(0, DETAIL_CHARS_MAX) ?? null;
    const recorded = { ...NOTHING, ...event, detail, number: ++this.#last, time: new Date().toISOString() };
    this.#events.set(recorded.number, recorded);
    const subject = subjectOf(recorded);
    const numbers = this.#numbersOf.get(subject);
    if (numbers === undefined) this.#numbersOf.set(subject, [recorded.number]);
    else numbers.push(recorded.number);
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

  /** Drops the oldest event of the subject with the most; of several, of the one whose oldest is older. */
  #drop(): void {
    let [most, mostNumbers]: [string, number[]] = ["", []];
    for (const [subject, numbers] of this.#numbersOf) {
      const isMore = numbers.length > mostNumbers.length;
      const isOlder = numbers.length === mostNumbers.length && (numbers[0] ?? 0) < (mostNumbers[0] ?? 0);
      if (isMore || isOlder) [most, mostNumbers] = [subject, numbers];
    }
    const oldest = mostNumbers.shift();
    if (oldest !== undefined) this.#events.delete(oldest);
    if (mostNumbers.length === 0) this.#numbersOf.delete(most);
  }
}

function subjectOf({ containerId, server, network }: EventReport): string {
  return containerId ?? server ?? network ?? "";
}
