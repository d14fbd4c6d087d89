/**
 * LiveRun: keeps a board up to date from a running dns11. Each part is requested as often as it matters: failures every second, what
 * containers see when an event says that it changed. A page that nobody looks at keeps only the failures, for its title.
 */
import type { CacheEntriesReport, CacheReport } from "../../../api/cache.ts";
import type { ContainerReport, ContainersReport } from "../../../api/containers.ts";
import type { DoctorLine } from "../../../base/model/finding.ts";
import type { EgressReport } from "../../../api/egress.ts";
import type { EventReport } from "../../../api/events.ts";
import type { Explanation, NameRequest } from "../../../api/names.ts";
import type { MissedReport, QueriesReport, QueryReport, SkippedReport } from "../../../api/queries.ts";
import type { Scope } from "../model/scope.ts";
import { type Lookup, addQuery } from "../model/lookup.ts";
import { type Api, type ApiError, parse } from "./api.ts";
import type { Board, Connection, QueryFilter, Run } from "./board.ts";
import type { Cell } from "./cell.ts";

const PAUSE_MS = 1_000;
const PAUSE_MS_MAX = 5_000;

/** Lines as they come. One that ends or breaks is opened again, after a pause that grows while that fails. */
interface StreamEvents<T> {
  readonly onOpen: () => void;
  readonly onLine: (line: T) => void;
}

/** Called after each request. */
type OnPolled = (error: ApiError | undefined) => void;

const PUT_OFF_MS_MAX = 5_000;

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

  async lookupsOf(id: string): Promise<readonly Lookup[]> {
    const text = await this.#api.text(`v1/queries?container=${encodeURIComponent(id)}&last=${OWN_QUERIES}`);
    const lookups: Lookup[] = [];
    for (const query of (parse(text) as QueriesReport).queries) addQuery(lookups, query, query.seq);
    return lookups;
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

/**
 * One value of the run, requested again and again. Requests do not overlap, and a response that is the same as the last one
 * changes nothing, so nothing is drawn.
 */
class Poll<T> {
  readonly #api: Api;
  readonly #path: string;
  readonly #cell: Cell<T | null>;
  readonly #everyMs: number;
  readonly #onPolled: OnPolled;
  #last = "";
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isBusy = false;
  /** Requested again while a request was under way. */
  #isWanted = false;
  /** Repeated calls of `soon` delay the request no longer than until then. */
  #untilMs: number | undefined;

  constructor(api: Api, path: string, cell: Cell<T | null>, everyMs: number, onPolled: OnPolled = () => {}) {
    this.#api = api;
    this.#path = path;
    this.#cell = cell;
    this.#everyMs = everyMs;
    this.#onPolled = onPolled;
  }

  start(): void {
    this.stop();
    this.soon(0);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** Earlier than its turn; what asks for it often is answered once. */
  soon(afterMs: number): void {
    if (this.#isBusy) this.#isWanted = true;
    const nowMs = performance.now();
    this.#untilMs ??= nowMs + PUT_OFF_MS_MAX;
    this.#after(Math.max(0, Math.min(afterMs, this.#untilMs - nowMs)));
  }

  /** The value is not to be shown any more. */
  forget(): void {
    this.#last = "";
    this.#cell.set(null);
  }

  #after(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#request(), ms);
  }

  async #request(): Promise<void> {
    if (this.#isBusy) return;
    this.#isBusy = true;
    this.#untilMs = undefined;
    let error: ApiError | undefined;
    try {
      const text = await this.#api.text(this.#path);
      if (text !== this.#last) {
        this.#last = text;
        this.#cell.set(parse(text) as T);
      }
    } catch (thrown) {
      error = thrown as ApiError;
    }
    this.#isBusy = false;
    this.#onPolled(error);
    if (this.#timer === undefined) return;
    const next = this.#isWanted ? 0 : this.#everyMs;
    this.#isWanted = false;
    this.#after(next);
  }
}

class Stream<T> {
  readonly #api: Api;
  readonly #events: StreamEvents<T>;
  #closed = new AbortController();

  constructor(api: Api, events: StreamEvents<T>) {
    this.#api = api;
    this.#events = events;
    this.#closed.abort();
  }

  open(path: string): void {
    this.close();
    this.#closed = new AbortController();
    void this.#follow(path, this.#closed.signal);
  }

  close(): void {
    this.#closed.abort();
  }

  async #follow(path: string, signal: AbortSignal): Promise<void> {
    for (let pauseMs = PAUSE_MS; !signal.aborted; pauseMs = Math.min(pauseMs * 2, PAUSE_MS_MAX)) {
      try {
        const { onOpen } = this.#events;
        for await (const line of this.#api.lines<T>(path, signal, { onOpen })) {
          pauseMs = PAUSE_MS;
          this.#events.onLine(line);
        }
      } catch {
        // Whether dns11 runs is shown by the polls.
      }
      if (signal.aborted) return;
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }
}
