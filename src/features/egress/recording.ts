import { reasonOf } from "../../base/lib/fault.ts";
import { guard } from "../../base/lib/guard.ts";
import { ownSlice } from "../../base/lib/slices.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import type { NoLink } from "../../container/links/container-link.ts";
import type { ContainerLinks } from "../../container/links/container-links.ts";
import type { NetNamespace } from "../../kernel/net-namespace.ts";
import { EGRESS_LIMITS } from "./limits.ts";
import { type Reading, Recorder, type Recorded } from "./recorder.ts";
import { addressText } from "../../base/model/address.ts";

/** What is known of one container. */
interface RecordedContainer {
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
      await ownSlice();
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
    await ownSlice();
  }
}

interface Connection {
  readonly address: string;
  readonly protocol: number;
  /** 0 where the protocol has none, or the packet did not show it. */
  readonly port: number;
  /** On the clock of `Date.now`. The first is exact where it was the only one until it was read. */
  readonly firstMs: number;
  readonly lastMs: number;
  readonly count: number;
  /** What it had asked that was answered with the address. */
  readonly names: readonly string[];
}

interface Entry extends Connection {
  firstMs: number;
  lastMs: number;
  count: number;
  names: readonly string[];
  /** The kernel's count when it was read last. */
  counted: number;
  /** When it was used last, on a clock that nobody sets. */
  usedMs: number;
}

interface NewConnections {
  asked: number;
  unasked: number;
}

/** The names that were answered with an address until then. */
type NamesOf = (address: string, untilMs: number) => readonly string[];

/**
 * Where one container connected to, from what the kernel recorded at each reading. The kernel counts from
 * when it has a destination until nothing has used it for a while, and may then begin anew.
 */
export class ConnectionHistory {
  /** The one that was used last is at the end. */
  readonly #entries = new Map<string, Entry>();
  /** The earliest connection that may be missing. */
  #missingSinceMs: number | undefined;
  #readMs: number;
  readonly #steady: () => number;

  /** `startMs`: from when on the kernel records. */
  constructor(startMs: number, steady = (): number => performance.now()) {
    this.#readMs = startMs;
    this.#steady = steady;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Since when connections may be missing, because there was no room; undefined if all are here. */
  get missingSinceMs(): number | undefined {
    return this.#missingSinceMs;
  }

  /** Adds what the kernel has recorded. Returns how many connections are new: to addresses with a name, and without. */
  add(recorded: readonly Recorded[], isFull: boolean, nowMs: number, namesOf: NamesOf): NewConnections {
    const fresh = { asked: 0, unasked: 0 };
    const beforeMs = this.#readMs;
    this.#readMs = nowMs;
    for (const each of recorded) {
      const { names, count } = this.#addOne(each, beforeMs, nowMs, namesOf);
      fresh[names.length === 0 ? "unasked" : "asked"] += count;
    }
    if (isFull) this.#missingSinceMs ??= beforeMs;
    return fresh;
  }

  #addOne(
    { address: bytes, protocol, port, count, agoMs }: Recorded,
    beforeMs: number,
    nowMs: number,
    namesOf: NamesOf,
  ): { readonly names: readonly string[]; readonly count: number } {
    const lastMs = nowMs - agoMs;
    const address = addressText(bytes);
    const key = `${protocol} ${port} ${address}`;
    const known = this.#entries.get(key);
    const usedMs = this.#steady() - agoMs;
    const fresh = known === undefined ? count : freshOf(known, count, usedMs);
    if (known !== undefined && fresh === 0) return { names: known.names, count: 0 };
    const names = namesOf(address, lastMs);
    if (known === undefined) {
      // Several since the last reading: the first was any time since then.
      const firstMs = count === 1 ? lastMs : Math.min(lastMs, beforeMs);
      this.#entries.set(key, { address, protocol, port, firstMs, lastMs, count, names, counted: count, usedMs });
      if (this.#entries.size > EGRESS_LIMITS.connections) this.dropOldest();
      return { names, count: fresh };
    }
    known.count += fresh;
    known.counted = count;
    known.lastMs = lastMs;
    known.usedMs = usedMs;
    known.names = merged(known.names, names);
    this.#entries.delete(key);
    this.#entries.set(key, known);
    return { names: known.names, count: fresh };
  }

  /** The kernel has dropped what it had. */
  countAnew(): void {
    for (const entry of this.#entries.values()) entry.counted = 0;
  }

  /** The same, and nothing was recorded until now. */
  beginAnew(nowMs: number): void {
    this.countAnew();
    this.#readMs = nowMs;
  }

  /** There is no room for all. */
  dropOldest(): void {
    for (const [key, { firstMs }] of this.#entries) {
      this.#entries.delete(key);
      this.#missingSinceMs = Math.min(this.#missingSinceMs ?? firstMs, firstMs);
      return;
    }
  }

  /** The one that was used last comes first. */
  list(): readonly Connection[] {
    return [...this.#entries.values()].toSorted((a, b) => b.lastMs - a.lastMs);
  }
}

/** How many are new since it was read last. */
function freshOf({ counted, usedMs: beforeMs }: Entry, count: number, usedMs: number): number {
  if (count === counted && usedMs - beforeMs <= EGRESS_LIMITS.kernelMs) return 0;
  // The kernel had forgotten it.
  if (count < counted) return count;
  return usedMs - beforeMs > EGRESS_LIMITS.kernelMs ? Math.max(1, count - counted) : count - counted;
}

function merged(a: readonly string[], b: readonly string[]): readonly string[] {
  const fresh = b.filter((name) => !a.includes(name));
  return fresh.length === 0 ? a : [...a, ...fresh].slice(-EGRESS_LIMITS.names);
}
