/**
 * Listener: dns11 at an address of the host, for containers whose queries never reach 127.0.0.11 in their namespace. Off by
 * default. A container is known by the link on the host that its packets come in by, together with its address there.
 *
 *   off --(setting)--> opening --(link, sockets, rules)--> serving --(setting, stop)--> closed
 *                        |   ^                                |
 *                        v   |  after a while                 | a change of rules failed
 *                      failed <-------------------------------+
 *
 * Nobody answers in its place while it is away. So its link stays when the process ends, and queries are refused at once.
 */
import type { ListenerReport } from "../../api/listener.ts";
import { drained } from "../../base/lib/retry.ts";
import { isInternalError, reasonWithRemedy, codeOf } from "../../base/lib/fault.ts";
import { guard } from "../../base/lib/guard.ts";
import { LIMITS } from "../../base/limits.ts";
import type { ReportEvent } from "../../base/log/log.ts";
import type { AskingContainers, OpenSharedEndpoint, SharedEndpoint } from "../../container/host-address/endpoints.ts";
import { type HostSocketsParts, pausedPairs } from "../../container/host-address/host-sockets.ts";
import { BUILDS_ID } from "./builds.ts";
import { type Asker, type Askers, NO_ASKERS, askersOf, unchangedAddresses } from "./listener-table.ts";
import { type OpenListener, openListener, removeListenerLink } from "./opening.ts";

interface ListenerParts extends HostSocketsParts {
  readonly openEndpoint: OpenSharedEndpoint;
  readonly containers: AskingContainers;
  /** Begins to follow the links of containers. Resolves when those of all known ones are known. */
  readonly followLinks: () => Promise<void>;
  /** The links of all running containers, as they are now. */
  readonly askers: () => Iterable<Asker>;
  /** The indexes of these links, and of those without an address. */
  readonly links: () => Iterable<number>;
  readonly startAfter: Promise<void>;
  readonly onEvent: ReportEvent;
  /** It answers now, or no longer. */
  readonly onState: () => void;
}

type State =
  | { readonly kind: "off" | "opening" | "closed" }
  | { readonly kind: "serving" }
  | { readonly kind: "failed"; readonly code: string; readonly reason: string };

interface Serving extends OpenListener {
  readonly endpoint: SharedEndpoint;
}

type ListenerCounts = Pick<ListenerReport, "queries" | "refused" | "lost">;
const NO_COUNTS: ListenerCounts = {
  queries: 0,
  refused: { asker: 0, unknown: 0, host: 0, address: 0 },
  lost: 0,
};

export class Listener {
  readonly #parts: ListenerParts;
  #isWanted = false;
  #state: State = { kind: "off" };
  #serving: Serving | undefined;
  /** What the rules let through. */
  #installed: Askers = NO_ASKERS;
  /** What was counted before it was opened last. */
  #before: ListenerCounts = NO_COUNTS;
  #isPaused = false;
  /** A change of the askers that waits for its turn. */
  #isStale = false;
  #retryTimer: NodeJS.Timeout | undefined;
  /** Its changes are made one after the other. */
  #turn: Promise<void> = Promise.resolve();

  constructor(parts: ListenerParts) {
    this.#parts = parts;
  }

  /** Whether it serves, or it is known why not. */
  get isSettled(): boolean {
    return this.#state.kind !== "opening";
  }

  /** What is known without asking the kernel. */
  get place(): Pick<ListenerReport, "state" | "addresses"> {
    const { kind } = this.#state;
    const addresses = this.#serving?.pairs.map(({ listening }) => listening.address) ?? [];
    return { state: kind === "closed" ? "off" : kind, addresses };
  }

  get report(): ListenerReport {
    const state = this.#state;
    return {
      ...this.place,
      askers: new Set([...this.#installed.byAddress.values()].filter((id) => id !== BUILDS_ID)).size,
      ambiguous: this.#installed.ambiguous,
      ...this.#counts,
      ...(state.kind === "failed" && { code: state.code, reason: state.reason }),
    };
  }

  get #counts(): ListenerCounts {
    const { queries, refused, lost } = this.#before;
    if (this.#serving === undefined) return this.#before;
    const { endpoint, sockets } = this.#serving;
    const { asker, unknown, host } = sockets.table.drops;
    return {
      queries: queries + endpoint.queries,
      refused: {
        asker: refused.asker + asker,
        unknown: refused.unknown + unknown,
        host: refused.host + host,
        address: refused.address + endpoint.refused,
      },
      lost: lost + endpoint.lost,
    };
  }

  configure(isWanted: boolean): void {
    if (isWanted === this.#isWanted) return;
    this.#isWanted = isWanted;
    if (isWanted) return this.#begin();
    clearTimeout(this.#retryTimer);
    this.#next(async () => {
      await this.#close();
      this.#removeLink();
      this.#become({ kind: "off" });
    });
  }

  /** The links of containers have changed. */
  refresh(): void {
    if (this.#isStale || !this.#isWanted) return;
    this.#isStale = true;
    this.#next(async () => {
      this.#isStale = false;
      await this.#follow();
    });
  }

  /** What a container sees has changed, or whether it gets answers. */
  update(containerId: string): void {
    this.#serving?.endpoint.update(containerId);
  }

  /** Reads no more queries and touches no rule: the next process is about to take over. */
  async pause(): Promise<void> {
    clearTimeout(this.#retryTimer);
    this.#isPaused = true;
    await this.#turn;
    const serving = this.#serving;
    if (serving === undefined) return;
    serving.pairs = pausedPairs(serving.pairs, serving.endpoint);
    serving.sockets.hold(serving.pairs);
  }

  /** Continues after a takeover that failed. */
  resume(): void {
    this.#isPaused = false;
    this.#serving?.endpoint.resume();
    if (this.#serving === undefined && this.#isWanted) this.#begin();
    else this.refresh();
  }

  /** Lets go after a takeover. */
  async abandon(): Promise<void> {
    clearTimeout(this.#retryTimer);
    await this.#drained();
    const serving = this.#serving;
    this.#serving = undefined;
    this.#state = { kind: "closed" };
    serving?.endpoint.close();
    serving?.sockets.letGo();
  }

  /** Answers what it has received, and closes. */
  async stop(): Promise<void> {
    clearTimeout(this.#retryTimer);
    this.#isWanted = false;
    await this.#turn;
    await this.#drained();
    this.#next(async () => await this.#close());
    await this.#turn;
  }

  async #drained(): Promise<void> {
    const endpoint = this.#serving?.endpoint;
    await drained(() => endpoint !== undefined && endpoint.inFlight > 0, LIMITS);
  }

  #begin(): void {
    clearTimeout(this.#retryTimer);
    if (this.#state.kind !== "failed") this.#state = { kind: "opening" };
    const isReady = this.#untilReady();
    // A run that ends before it is ready waits for no turn.
    void isReady.then(
      () => this.#next(async () => await this.#openIfWanted()),
      (error: unknown) => this.#next(async () => await this.#fail(error)),
    );
  }

  async #untilReady(): Promise<void> {
    await this.#parts.followLinks();
    await this.#parts.startAfter;
    // By now every running container is known.
    await this.#parts.followLinks();
  }

  async #openIfWanted(): Promise<void> {
    if (this.#serving === undefined && this.#isWanted && !this.#isPaused) await this.#open();
  }

  async #open(): Promise<void> {
    const { openEndpoint, containers, onEvent } = this.#parts;
    const askers = this.#askers();
    const opened = await openListener(this.#parts, askers);
    let endpoint: SharedEndpoint;
    try {
      endpoint = openEndpoint(opened.pairs, opened.waiting, containers);
    } catch (error) {
      opened.sockets.close();
      throw error;
    }
    endpoint.setContainers(askers.byAddress);
    const serving: Serving = Object.assign(opened, { endpoint });
    this.#serving = serving;
    this.#installed = askers;
    serving.sockets.hold(serving.pairs);
    this.#become({ kind: "serving" });
    const { addresses } = this.place;
    onEvent({ addresses, askers: askers.byAddress.size }, "the listener on the host answers");
    this.#warnOf(askers, NO_ASKERS);
  }

  /** Removes an asker first from those who are answered, and adds a new one there last: in between it gets nothing. */
  async #follow(): Promise<void> {
    const serving = this.#serving;
    if (serving === undefined || this.#isPaused) return;
    const before = this.#installed;
    const now = this.#askers();
    serving.endpoint.setContainers(unchangedAddresses(before, now));
    await serving.sockets.table.change(before, now);
    this.#installed = now;
    serving.endpoint.setContainers(now.byAddress);
    this.#warnOf(now, before);
  }

  #askers(): Askers {
    return askersOf(this.#parts.askers(), this.#parts.links());
  }

  #warnOf({ ambiguous }: Askers, before: Askers): void {
    const addresses = ambiguous.filter((each) => !before.ambiguous.includes(each));
    if (addresses.length === 0) return;
    this.#parts.onEvent({ addresses }, "several containers have an address, the listener answers none of them", "warn");
  }

  async #close(): Promise<void> {
    const serving = this.#serving;
    this.#before = this.#counts;
    this.#serving = undefined;
    this.#installed = NO_ASKERS;
    if (serving === undefined) return;
    this.#state = { kind: "closed" };
    try {
      await serving.sockets.table.remove();
    } finally {
      serving.endpoint.close();
      serving.sockets.close();
    }
  }

  #removeLink(): void {
    const { runner, memory, host } = this.#parts;
    runner.within(host().network, () => removeListenerLink(memory));
  }

  #next(step: () => Promise<void>): void {
    this.#turn = this.#turn.then(step).catch(async (error: unknown) => await this.#fail(error));
  }

  async #fail(error: unknown): Promise<void> {
    if (isInternalError(error)) guard.report(error, "attach");
    const reason = reasonWithRemedy(error);
    const isNew = this.#state.kind !== "failed" || this.#state.reason !== reason;
    await this.#closeAnyway();
    const code = codeOf(error) ?? "LISTENER_FAILED";
    this.#become(this.#isWanted ? { kind: "failed", code, reason } : { kind: "off" });
    if (isNew) this.#parts.onEvent({ reason }, "the listener on the host does not answer", "warn");
    if (!this.#isWanted) return;
    this.#retryTimer = setTimeout(() => guard.run("timer", 0, () => this.#begin()), LIMITS.listenerRetryMs).unref();
  }

  async #closeAnyway(): Promise<void> {
    try {
      await this.#close();
    } catch {
      // The tables go with the socket that owns them.
    }
  }

  #become(state: State): void {
    const isOther = state.kind !== this.#state.kind;
    this.#state = state;
    if (isOther) this.#parts.onState();
  }
}
