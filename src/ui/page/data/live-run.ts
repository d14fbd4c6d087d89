/**
 * LiveRun: keeps a board up to date from a running dns11. Each part is requested as often as it matters: failures every second, what
 * containers see when an event says that it changed. A page that nobody looks at keeps only the failures, for its title.
 */
import type { CacheEntriesReport, CacheReport } from "../../../api/cache.ts";
import type { ContainerReport, ContainersReport } from "../../../api/containers.ts";
import type { DoctorLine } from "../../../api/doctor-lines.ts";
import type { EgressReport } from "../../../api/egress.ts";
import type { EventReport } from "../../../api/events.ts";
import type { Explanation, NameRequest } from "../../../api/names.ts";
import type { MissedReport, QueriesReport, QueryReport, SkippedReport } from "../../../api/queries.ts";
import type { Scope } from "../model/scope.ts";
import { type Api, type ApiError, parse } from "./api.ts";
import type { Board, Connection, QueryFilter, Run } from "./board.ts";
import type { Cell } from "./cell.ts";
import { type OnPolled, Poll } from "./poll.ts";
import { Stream } from "./stream.ts";
import type { TapeRow } from "./query-tape.ts";

const EVENTS_MAX = 200;
const PER_SECOND = 100;
const PAST_QUERIES = 50;
const OWN_QUERIES = 20;
/** Events come in bursts: a project starts. */
const AFTER_EVENT_MS = 500;
/** dns11 runs, and records no names. */
const FAILURES_OFF = "QUERIES_OFF";
/** Too many pages and tabs ask at once. */
const BUSY = "UI_BUSY";
const FAILING = "SERVFAIL,NXDOMAIN,REFUSED,FORMERR,NOTIMP,BADVERS";

export class LiveRun implements Run {
  readonly #api: Api;
  readonly #board: Board;
  readonly #failures: Poll<unknown>;
  readonly #visible: readonly Poll<unknown>[];
  readonly #structure: readonly Poll<unknown>[];
  readonly #events: Stream<EventReport>;
  readonly #queries: Stream<QueryReport | MissedReport | SkippedReport>;
  /** Polls without a first response. */
  readonly #unfilled = new Set<Poll<unknown>>();
  #filter: QueryFilter | null = null;

  constructor(api: Api, board: Board) {
    this.#api = api;
    this.#board = board;
    const poll = <T>(path: string, cell: Cell<T | null>, everyMs: number, onPolled?: OnPolled): Poll<unknown> => {
      const made = new Poll(api, `v1/${path}`, cell, everyMs, (error) => {
        this.#unfilled.delete(made);
        onPolled?.(error);
        // Without dns11 every request has been answered, and nothing is known.
        if (this.#unfilled.size === 0 && board.containers.value !== null) board.isFilled.set(true);
      });
      this.#unfilled.add(made);
      return made;
    };
    this.#failures = poll("failures", board.failures, 1_000, (error) => this.#onPolled(error));
    this.#structure = [
      poll("containers?all=true", board.containers, 30_000),
      poll("networks", board.networks, 30_000),
      poll("matrix", board.matrix, 30_000),
    ];
    this.#visible = [
      poll("status", board.status, 5_000),
      poll("upstreams", board.upstreams, 2_000),
      poll("history", board.history, 5_000),
      ...this.#structure,
    ];
    this.#events = new Stream(api, {
      onOpen: () => board.events.set([]),
      onLine: (event) => this.#onEvent(event),
    });
    this.#queries = new Stream(api, { onOpen: () => board.tape.clear(), onLine: (line) => board.tape.add(line) });
    // Not before the board has this run.
    setTimeout(() => this.#start(), 0);
  }

  async explain(request: NameRequest): Promise<Explanation> {
    return await this.#api.post<Explanation>("v1/explain", request);
  }

  async container(id: string): Promise<ContainerReport | undefined> {
    const text = await this.#api.text(`v1/containers?all=true&container=${encodeURIComponent(id)}`);
    return (parse(text) as ContainersReport).containers[0];
  }

  async queriesOf(id: string): Promise<readonly TapeRow[]> {
    const text = await this.#api.text(`v1/queries?container=${encodeURIComponent(id)}&last=${OWN_QUERIES}`);
    return (parse(text) as QueriesReport).queries.map((query) => ({ ...query, key: query.seq })).toReversed();
  }

  async connectionsOf(id: string): Promise<EgressReport | undefined> {
    try {
      return parse(await this.#api.text(`v1/egress?container=${encodeURIComponent(id)}`)) as EgressReport;
    } catch {
      // It is off, or dns11 is older than this page.
      return undefined;
    }
  }

  async cache(): Promise<CacheReport> {
    return parse(await this.#api.text("v1/cache")) as CacheReport;
  }

  async cacheEntries(pattern: string): Promise<CacheEntriesReport> {
    const text = await this.#api.text(`v1/cache/entries?last=100&name=${encodeURIComponent(pattern)}`);
    return parse(text) as CacheEntriesReport;
  }

  async *doctor({ project }: Scope, signal: AbortSignal): AsyncGenerator<DoctorLine, void> {
    yield* this.#api.lines<DoctorLine>("v1/doctor", signal, { body: project === null ? {} : { project } });
  }

  follow(filter: QueryFilter | null): void {
    this.#filter = filter;
    if (filter === null || document.hidden) this.#queries.close();
    else this.#queries.open(queriesPath(filter));
  }

  #start(): void {
    document.addEventListener("visibilitychange", () => this.#onVisibility());
    this.#failures.start();
    this.#onVisibility();
  }

  #onVisibility(): void {
    if (document.hidden) {
      for (const poll of this.#visible) poll.stop();
      this.#events.close();
      this.#queries.close();
      return;
    }
    for (const poll of this.#visible) poll.start();
    this.#events.open("v1/events?follow=true&last=100");
    this.follow(this.#filter);
  }

  #onEvent(event: EventReport): void {
    const { events } = this.#board;
    events.set([event, ...events.value].slice(0, EVENTS_MAX));
    if (!/^(?:container|network)-|^attach|^handed-back/.test(event.kind)) return;
    for (const poll of this.#structure) poll.soon(AFTER_EVENT_MS);
  }

  #onPolled(error: ApiError | undefined): void {
    const { connection, areFailuresOff } = this.#board;
    const before = connection.value;
    const areOff = error?.code === FAILURES_OFF;
    areFailuresOff.set(areOff);
    if (areOff) this.#failures.forget();
    const state = stateOf(error);
    if (state === undefined || before.state === state) return;
    connection.set(state === "live" ? { state } : { state, sinceMs: Date.now() });
    // What was known may be of another run.
    if (state === "live" && before.state !== "connecting" && !document.hidden) {
      for (const poll of this.#visible) poll.soon(0);
    }
  }
}

/** undefined: it does not say whether dns11 runs. */
function stateOf(error: ApiError | undefined): Exclude<Connection["state"], "connecting" | "snapshot"> | undefined {
  if (error?.code === BUSY) return undefined;
  if (error === undefined || error.code === FAILURES_OFF) return "live";
  if (error.code === "UI_TOKEN") return "denied";
  return error.code === "UNREACHABLE" ? "no-server" : "no-daemon";
}

function queriesPath({ container, text, result }: QueryFilter): string {
  const query = new URLSearchParams({
    follow: "true",
    perSecond: String(PER_SECOND),
    last: String(PAST_QUERIES),
    causes: "true",
  });
  if (container !== "") query.set("container", container);
  const pattern = text.trim();
  if (pattern !== "") query.set("name", /[*?]/.test(pattern) ? pattern : `*${pattern}*`);
  if (result !== "") query.set("rcode", result === "failures" ? FAILING : result);
  return `v1/queries?${query}`;
}
