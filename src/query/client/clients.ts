/** Clients: the clients of all containers, by container ID. */
import type { RecentCountsReport } from "../../api/status.ts";
import type { View } from "../../base/model/view.ts";
import type { FailureTables } from "../failures/failure-table.ts";
import type { QueryHistories } from "../history/query-histories.ts";
import { Client, type Dial } from "./client.ts";
import { Minutes } from "./recent-counts.ts";
import type { OutcomeNote } from "./client.ts";
import { type SlotLimit, Slots, type SharePools } from "./slots.ts";

/** Learns of the clients of all containers, and may record their queries. */
export interface QueryObserver {
  /** A container gets a new client, which has read no query yet. Undefined: nothing is recorded of it. */
  open(containerId: string, client: Client): OutcomeNote | undefined;
  /** A client of the container was closed. A container that is attached again has two for a moment. */
  close(containerId: string): void;
}

interface ClientsParts {
  readonly slots?: SlotLimit;
  readonly histories: QueryHistories;
  readonly failures: FailureTables;
  readonly shares: SharePools;
}

export class Clients {
  readonly #parts: ClientsParts;
  readonly #observers: QueryObserver[] = [];
  readonly #minutes = new Minutes();
  readonly #open = new Map<string, Client>();
  /** Includes the earlier clients of containers that are being attached again. */
  readonly #all = new Set<Client>();

  constructor(parts: ClientsParts) {
    this.#parts = parts;
  }

  /** The observer sees the clients that are opened from now on. */
  observe(observer: QueryObserver): void {
    this.#observers.push(observer);
  }

  /** Opens a client. A container that is attached again has two for a moment, and the later one is found here. */
  open(containerId: string, view: View, dial: Dial): Client {
    const { slots, histories, failures, shares } = this.#parts;
    const history = histories.open(containerId);
    const failing = failures.open(containerId);
    const client = new Client(view, dial, new Slots(slots), history, shares.open(), failing);
    const observers = [...this.#observers];
    client.notes = observers.flatMap((observer) => observer.open(containerId, client) ?? []);
    this.#minutes.open(client.recent);
    this.#open.set(containerId, client);
    this.#all.add(client);
    client.onClose(() => {
      this.#all.delete(client);
      if (this.#open.get(containerId) === client) this.#open.delete(containerId);
      this.#minutes.close(client.recent);
      histories.close(history);
      failures.close(failing);
      for (const observer of observers) observer.close(containerId);
    });
    return client;
  }

  /** Returns undefined for a container that is not served. */
  of(containerId: string): Client | undefined {
    return this.#open.get(containerId);
  }

  /** Counts what the kernel has answered since the last call. */
  collect(): void {
    for (const client of this.#all) client.collect();
  }

  /** Ends the repeating of earlier answers, which may no longer be right. */
  forgetRepeated(): void {
    for (const client of this.#all) client.repeater?.forget();
  }

  /** Counts a container's queries of the last minute. */
  recentOf(containerId: string): RecentCountsReport | undefined {
    const client = this.of(containerId);
    return client && this.#minutes.read(client.recent);
  }
}
