import { reasonOf } from "../../base/lib/fault.ts";
import { guard } from "../../base/lib/guard.ts";
import { ownRound } from "../../base/lib/own-round.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import type { NoLink } from "../../container/links/container-link.ts";
import type { ContainerLinks } from "../../container/links/container-links.ts";
import type { NetNamespace } from "../../kernel/net-namespace.ts";
import { ConnectionHistory, type NewConnections } from "./connection-history.ts";
import { EGRESS_LIMITS } from "./limits.ts";
import { type Reading, Recorder } from "./recorder.ts";

/** What is known of one container. */
export interface RecordedContainer {
  readonly id: string;
  readonly name: string;
  /** It has ended. */
  readonly isEnded: boolean;
  readonly history: ConnectionHistory;
}

interface RecordingParts {
  readonly links: ContainerLinks;
  /** The network of the Docker daemon's host. */
  readonly networkId: () => string;
  readonly openNetns: () => { readonly netns: NetNamespace; readonly close: () => void };
  readonly containers: () => Iterable<ContainerFact>;
  /** The names that a container was answered an address with, until then. */
  readonly namesOf: (containerId: string, address: string, untilMs: number) => readonly string[];
}

interface Followed {
  name: string;
  isEnded: boolean;
  /** In progress; and the one after it, which sees what happened meanwhile. */
  reading?: Promise<void> | undefined;
  nextReading?: Promise<void> | undefined;
  readonly history: ConnectionHistory;
}

/** What one recording consists of, from turning it on to turning it off. */
interface Running {
  readonly recorder: Recorder;
  readonly networkId: string;
  readonly closeNetns: () => void;
  readonly endListening: () => void;
  readonly timer: NodeJS.Timeout;
}

/**
 * Where containers connect to, while `egress` is on: what the kernel records of each, read when somebody asks and every half minute,
 * with the names that the container had asked.
 */
export class Recording {
  readonly #parts: RecordingParts;
  readonly #followed = new Map<string, Followed>();
  /** The changes of being on, one after the other. */
  #switching: Promise<void> = Promise.resolve();
  #isWanted = false;
  #running: Running | undefined;
  #problem: string | undefined;
  /** How many connections there have been, to addresses that the container had asked for and to others. */
  readonly #counts: NewConnections = { asked: 0, unasked: 0 };

  constructor(parts: RecordingParts) {
    this.#parts = parts;
  }

  get isOn(): boolean {
    return this.#isWanted;
  }

  /** Why nothing is recorded although it is on. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Whether answers by UDP are told from connections of the container's own. */
  get tellsAnswers(): boolean {
    return this.#running?.recorder.tellsAnswers ?? true;
  }

  /** For metrics; undefined while it is off. */
  get readings(): { asked: number; unasked: number; recorded: number; incomplete: number } | undefined {
    if (this.#running === undefined) return undefined;
    const recorded = [...this.#followed.values()].filter(({ isEnded }) => !isEnded);
    const incomplete = recorded.filter(({ history }) => history.missingSinceMs !== undefined).length;
    return { ...this.#counts, recorded: recorded.length, incomplete };
  }

  /** Turning it off drops what was recorded. Resolves when it is done. */
  async setOn(isOn: boolean): Promise<void> {
    this.#isWanted = isOn;
    await this.#inTurn(async () => await this.#switch());
  }

  /** The Docker daemon may be another process, on another network. */
  async hostChanged(): Promise<void> {
    await this.#inTurn(async () => {
      if (this.#running === undefined || this.#running.networkId === this.#parts.networkId()) return;
      await this.refresh().catch((error: unknown) => guard.report(error, "netlink"));
      await this.#end();
      await this.#switch();
    });
  }

  put({ id, name }: ContainerFact): void {
    const known = this.#followed.get(id);
    if (known !== undefined) Object.assign(known, { name, isEnded: false });
  }

  /** A container has ended: reads what it did last. */
  remove(containerId: string): void {
    const known = this.#followed.get(containerId);
    if (known === undefined) return;
    known.isEnded = true;
    void this.#readSoon(known, containerId)
      .catch((error: unknown) => guard.report(error, "netlink"))
      .finally(() => {
        if (!known.isEnded) return;
        this.#running?.recorder.forget(containerId);
        this.#dropEnded();
      });
  }

  /** Reads what the kernel has recorded until now: of these containers, or of all. */
  async refresh(isWanted: (containerId: string, name: string) => boolean = () => true): Promise<void> {
    await this.#running?.recorder.settled();
    for (const [id, known] of this.#followed) {
      if (!isWanted(id, known.name)) continue;
      // What one has done last may just be read.
      if (known.isEnded) await (known.nextReading ?? known.reading)?.catch(() => undefined);
      else await this.#readSoon(known, id);
      await ownRound();
    }
  }

  /** Those that have been recorded. */
  *list(): Generator<RecordedContainer> {
    for (const [id, { name, isEnded, history }] of this.#followed) yield { id, name, isEnded, history };
  }

  /** Why a container, or one of its networks, is not recorded. */
  missingOf(containerId: string): readonly Pick<NoLink, "reason" | "text" | "owner">[] {
    const { missing } = this.#parts.links.of(containerId);
    const failure = this.#running?.recorder.failureOf(containerId);
    return failure === undefined ? missing : [...missing, { reason: "not-found", text: failure }];
  }

  close(): void {
    this.#isWanted = false;
    const running = this.#running;
    this.#running = undefined;
    if (running === undefined) return;
    clearInterval(running.timer);
    running.endListening();
    running.recorder.close();
    running.closeNetns();
  }

  async #inTurn(change: () => Promise<void>): Promise<void> {
    const before = this.#switching;
    this.#switching = (async () => {
      // Whoever made it handles its failure.
      await before.catch(() => undefined);
      await change();
    })();
    await this.#switching;
  }

  async #switch(): Promise<void> {
    if (!this.#isWanted) {
      await this.#end();
      this.#followed.clear();
    } else if (this.#running === undefined) await this.#begin();
  }

  async #begin(): Promise<void> {
    const { links, containers, openNetns } = this.#parts;
    const networkId = this.#parts.networkId();
    let recorder, host;
    try {
      host = openNetns();
      recorder = await Recorder.open(host.netns);
      await links.start(containers());
    } catch (error) {
      this.#problem = `the kernel cannot record connections: ${reasonOf(error)}`;
      recorder?.close();
      host?.close();
      return;
    }
    this.#problem = undefined;
    const endListening = links.onChange((id) => this.#follow(id));
    const timer = setInterval(() => {
      void this.refresh().catch((error: unknown) => guard.report(error, "netlink"));
    }, EGRESS_LIMITS.readEveryMs);
    timer.unref();
    this.#running = { recorder, networkId, closeNetns: host.close, endListening, timer };
    for (const { id } of containers()) this.#follow(id);
    await recorder.settled();
  }

  async #end(): Promise<void> {
    const isWanted = this.#isWanted;
    this.close();
    this.#isWanted = isWanted;
  }

  #follow(containerId: string): void {
    const running = this.#running;
    if (running === undefined) return;
    const { links } = this.#parts.links.of(containerId);
    const known = this.#followed.get(containerId);
    if (links.length === 0 && known === undefined) return;
    if (known === undefined) {
      const name = [...this.#parts.containers()].find(({ id }) => id === containerId)?.name ?? containerId.slice(0, 12);
      const history = new ConnectionHistory(Date.now());
      this.#followed.set(containerId, { name, isEnded: false, history });
    }
    // One whose links are gone ends, or changes its network.
    if (known?.isEnded === true) return;
    // It has come back, or the host is another one: the kernel begins to count.
    if (!running.recorder.has(containerId)) known?.history.beginAnew(Date.now());
    running.recorder.record(containerId, links);
  }

  /** Callers at the same time share a reading that begins after they have called. */
  async #readSoon(known: Followed, containerId: string): Promise<void> {
    if (known.reading === undefined) {
      known.reading = this.#readOne(containerId).finally(() => (known.reading = undefined));
      return await known.reading;
    }
    known.nextReading ??= this.#readNext(known, containerId);
    await known.nextReading;
  }

  async #readNext(known: Followed, containerId: string): Promise<void> {
    await known.reading?.catch(() => undefined);
    known.nextReading = undefined;
    await this.#readSoon(known, containerId);
  }

  async #readOne(containerId: string): Promise<void> {
    const reading = await inParts(this.#running?.recorder.read(containerId));
    const known = this.#followed.get(containerId);
    if (reading === undefined || known === undefined) return;
    const { history } = known;
    const nowMs = Date.now();
    const fresh = history.add(reading.recorded, reading.isFull, nowMs, (address, untilMs) =>
      this.#parts.namesOf(containerId, address, untilMs),
    );
    if (reading.isFull) {
      await this.#running?.recorder.makeRoom(containerId, reading);
      history.countAnew();
    }
    this.#counts.asked += fresh.asked;
    this.#counts.unasked += fresh.unasked;
    this.#makeRoom();
  }

  #makeRoom(): void {
    let total = 0;
    for (const { history } of this.#followed.values()) total += history.size;
    for (; total > EGRESS_LIMITS.connectionsTotal; total--) {
      let largest: ConnectionHistory | undefined;
      for (const { history } of this.#followed.values()) {
        if (largest === undefined || history.size > largest.size) largest = history;
      }
      largest?.dropOldest();
    }
  }

  /** Of those that have ended, the last ones stay. */
  #dropEnded(): void {
    const ended = [...this.#followed].filter(([, { isEnded }]) => isEnded);
    for (const [id] of ended.slice(0, Math.max(0, ended.length - EGRESS_LIMITS.ended))) this.#followed.delete(id);
  }
}

/** Queries are answered between two parts. */
async function inParts(parts: Generator<void, Reading> | undefined): Promise<Reading | undefined> {
  if (parts === undefined) return undefined;
  for (let step = parts.next(); ; step = parts.next()) {
    if (step.done === true) return step.value;
    await ownRound();
  }
}
