import type { QueryJudge } from "../../query/verdict.ts";
import { Tape } from "./recording.ts";
import { type Rule, RuleSet } from "./rules.ts";
import { type VerdictCounts, Verdicts } from "./verdicts.ts";

/** Which containers are meant. */
export interface RuleScope {
  /** The same for all scopes that mean the same. */
  readonly key: string;
  /** By id, as the containers are now: those whose namespaces are meant. */
  select(): ReadonlySet<string>;
}

/** What the book needs of a client. */
export interface JudgedClient {
  judge: QueryJudge | undefined;
  readonly repeater: { forget(): void } | undefined;
  onClose(act: () => void): void;
}

/** An open client, and the rules for it, if there are any. */
interface Served {
  readonly client: JudgedClient;
  readonly containerId: string;
  verdicts: Verdicts | undefined;
}

/** A scope, what is for it, and the containers that have it. */
interface Chapter {
  readonly scope: RuleScope;
  readonly set: RuleSet;
  ids: ReadonlySet<string>;
}

/**
 * All rules in force, and the clients that each is about. A rule is for containers by what they are, so a container that starts later has
 * its rules before its first query is read. The kernel's answers for a client end in the same step in which its rules change.
 */
export class RuleBook {
  readonly #chapters = new Map<string, Chapter>();
  /** Open clients by container. */
  readonly #clients = new Map<string, Set<Served>>();
  #isRefreshing = false;
  /** Containers have changed since the last look. */
  #isStale = false;
  readonly counts: VerdictCounts = { fault: 0, answer: 0, deny: 0 };

  /** The number of scopes: each is looked at again whenever containers change. */
  get scopes(): number {
    return this.#chapters.size;
  }

  hasScope({ key }: RuleScope): boolean {
    return this.#chapters.has(key);
  }

  /** The containers of a scope, as of the last look. */
  idsOf({ key }: RuleScope): ReadonlySet<string> {
    return this.#chapters.get(key)?.ids ?? new Set();
  }

  /** A container is served from now on: before its first query is read. */
  open(client: JudgedClient, containerId: string): void {
    // The container may be newer than the last look.
    if (this.#isStale) this.refresh();
    const clients = this.#clients.get(containerId) ?? new Set();
    const served: Served = { client, containerId, verdicts: undefined };
    this.#clients.set(containerId, clients.add(served));
    client.onClose(() => {
      clients.delete(served);
      if (clients.size === 0 && this.#clients.get(containerId) === clients) this.#clients.delete(containerId);
    });
    for (const { ids, set } of this.#chapters.values()) if (ids.has(containerId)) this.#give(served, set);
  }

  /** Returns how many containers it is for at present. */
  add(entry: Rule | Tape, scope: RuleScope): number {
    const known = this.#chapters.get(scope.key);
    const chapter = known ?? { scope, set: new RuleSet(), ids: new Set<string>() };
    if (known === undefined) this.#chapters.set(scope.key, chapter);
    const before = chapter.ids;
    chapter.set.add(entry);
    this.#look(chapter);
    let count = 0;
    for (const served of this.#clientsOf(chapter.ids)) {
      if (before.has(served.containerId)) this.#give(served, chapter.set);
      count++;
    }
    return count;
  }

  remove(entry: Rule | Tape, { key }: RuleScope): void {
    const chapter = this.#chapters.get(key);
    if (chapter === undefined) return;
    chapter.set.remove(entry);
    if (!(entry instanceof Tape)) {
      for (const { verdicts } of this.#clientsOf(chapter.ids)) verdicts?.forget(entry);
      entry.tally.close();
    }
    if (!chapter.set.isEmpty) return;
    for (const served of this.#clientsOf(chapter.ids)) take(served, chapter.set);
    this.#chapters.delete(key);
  }

  /** Containers, their networks or their labels have changed: looks at them at the end of this turn. */
  containersChanged(): void {
    this.#isStale = true;
    if (this.#isRefreshing || this.#chapters.size === 0) return;
    this.#isRefreshing = true;
    setImmediate(() => {
      this.#isRefreshing = false;
      if (this.#isStale) this.refresh();
    });
  }

  refresh(): void {
    this.#isStale = false;
    for (const chapter of this.#chapters.values()) this.#look(chapter);
  }

  /** Looks at the containers of a scope again. */
  #look(chapter: Chapter): void {
    const before = chapter.ids;
    chapter.ids = chapter.scope.select();
    for (const served of this.#clientsOf(chapter.ids))
      if (!before.has(served.containerId)) this.#give(served, chapter.set);
    for (const served of this.#clientsOf(before)) if (!chapter.ids.has(served.containerId)) take(served, chapter.set);
  }

  *#clientsOf(ids: ReadonlySet<string>): Generator<Served> {
    for (const id of ids) yield* this.#clients.get(id) ?? [];
  }

  #give(served: Served, set: RuleSet): void {
    served.client.judge = served.verdicts ??= new Verdicts(served.containerId, this.counts);
    served.verdicts.sets.add(set);
    // The very next query is judged, also one that the kernel has answered so far.
    served.client.repeater?.forget();
  }
}

function take(served: Served, set: RuleSet): void {
  const { verdicts } = served;
  verdicts?.sets.delete(set);
  if (verdicts?.sets.size === 0) served.client.judge = served.verdicts = undefined;
}
