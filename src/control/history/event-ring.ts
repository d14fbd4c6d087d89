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
  /** Oldest first. */
  readonly #events: EventReport[] = [];
  #last = 0;

  record(event: NewEvent): void {
    if (this.#events.length >= LIMITS.events) this.#events.splice(this.#indexToDrop(), 1);
    const detail = event.detail?.slice(0, DETAIL_CHARS_MAX) ?? null;
    this.#events.push({ ...NOTHING, ...event, detail, number: ++this.#last, time: new Date().toISOString() });
  }

  /** The last `limit` events after the number `since`. */
  read(limit: number, since = 0): EventsReport {
    const wanted = this.#events.filter(({ number }) => number > since);
    const events = limit === 0 ? [] : wanted.slice(-limit);
    return { events, missed: Math.max(0, this.#last - since) - events.length, last: this.#last };
  }

  /** The last `limit` events, then each as it happens, until `signal`. */
  async *follow(limit: number, signal: AbortSignal): AsyncGenerator<EventReport, void> {
    let last = this.#last;
    yield* this.read(limit).events;
    while (!signal.aborted) {
      const fresh = this.#events.filter(({ number }) => number > last);
      last = this.#last;
      yield* fresh;
      await sleep(POLL_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  /** The oldest event of the subject with the most. */
  #indexToDrop(): number {
    const counts = new Map<string, number>();
    let [most, mostCount] = ["", 0];
    for (const event of this.#events) {
      const subject = subjectOf(event);
      const count = (counts.get(subject) ?? 0) + 1;
      counts.set(subject, count);
      if (count > mostCount) [most, mostCount] = [subject, count];
    }
    return this.#events.findIndex((event) => subjectOf(event) === most);
  }
}

function subjectOf({ containerId, server, network }: EventReport): string {
  return containerId ?? server ?? network ?? "";
}
