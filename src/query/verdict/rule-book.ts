/**
 * RuleBook: all rules in force, and the clients that each is about. A rule is for containers by what they are, so a container
 * that starts later has its rules before its first query is read. The kernel's answers for a client end in the same step in
 * which its rules change.
 */
import type { KernelAnswerMemory } from "../../base/model/kernel-answer.ts";
import type { Rule } from "./rule.ts";
import { Tape } from "./tape.ts";
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
  verdicts: Verdicts | undefined;
  readonly memory: KernelAnswerMemory | undefined;
  onClose(act: () => void): void;
}

/** The rules and tapes of one scope, and the containers that have them. */
interface Chapter {
  readonly scope: RuleScope;
  readonly entries: Set<Rule | Tape>;
  ids: ReadonlySet<string>;
}

export class RuleBook {
  readonly #chapters = new Map<string, Chapter>();
  /** Open clients by container. */
  readonly #clients = new Map<string, Set<JudgedClient>>();
  #isRefreshing = false;
  readonly counts: VerdictCounts = { fault: 0, answer: 0, deny: 0 };

  /** The number of scopes: each is looked at again whenever containers change. */
  get scopes(): number {
    return this.#chapters.size;
  }

  hasScope({ key }: RuleScope): boolean {
    return this.#chapters.has(key);
  }

  /** A container is served from now on: before its first query is read. */
  open(client: JudgedClient, containerId: string): void {
    // The container may be newer than the last look.
    this.refresh();
    const clients = this.#clients.get(containerId) ?? new Set();
    this.#clients.set(containerId, clients.add(client));
    client.onClose(() => {
      clients.delete(client);
      if (clients.size === 0 && this.#clients.get(containerId) === clients) this.#clients.delete(containerId);
    });
    for (const chapter of this.#chapters.values()) {
      if (!chapter.ids.has(containerId)) continue;
      for (const entry of chapter.entries) this.#give(client, containerId, entry);
    }
  }

  /** Returns how many containers it is for at present. */
  add(entry: Rule | Tape, scope: RuleScope): number {
    // Those that were there before are as the last refresh left them.
    this.refresh();
    const chapter = this.#chapters.get(scope.key) ?? { scope, entries: new Set(), ids: scope.select() };
    this.#chapters.set(scope.key, chapter);
    chapter.entries.add(entry);
    let served = 0;
    for (const [id, client] of this.#clientsOf(chapter.ids)) {
      this.#give(client, id, entry);
      served++;
    }
    return served;
  }

  remove(entry: Rule | Tape, { key }: RuleScope): void {
    const chapter = this.#chapters.get(key);
    if (chapter?.entries.delete(entry) !== true) return;
    for (const [, client] of this.#clientsOf(chapter.ids)) take(client, entry);
    if (chapter.entries.size === 0) this.#chapters.delete(key);
  }

  /** Containers, their networks or their labels have changed: looks at them at the end of this turn. */
  containersChanged(): void {
    if (this.#isRefreshing || this.#chapters.size === 0) return;
    this.#isRefreshing = true;
    setImmediate(() => {
      this.#isRefreshing = false;
      this.refresh();
    });
  }

  refresh(): void {
    for (const chapter of this.#chapters.values()) {
      const before = chapter.ids;
      chapter.ids = chapter.scope.select();
      for (const [id, client] of this.#clientsOf(chapter.ids))
        if (!before.has(id)) for (const entry of chapter.entries) this.#give(client, id, entry);
      for (const [id, client] of this.#clientsOf(before))
        if (!chapter.ids.has(id)) for (const entry of chapter.entries) take(client, entry);
    }
  }

  *#clientsOf(ids: ReadonlySet<string>): Generator<readonly [string, JudgedClient]> {
    for (const id of ids) for (const client of this.#clients.get(id) ?? []) yield [id, client];
  }

  #give(client: JudgedClient, containerId: string, entry: Rule | Tape): void {
    const verdicts = (client.verdicts ??= new Verdicts(containerId, this.counts));
    if (entry instanceof Tape) verdicts.tapes.add(entry);
    else verdicts.add(entry);
    // The very next query is judged, also one that the kernel has answered so far.
    client.memory?.forget();
  }
}

function take(client: JudgedClient, entry: Rule | Tape): void {
  const { verdicts } = client;
  if (verdicts === undefined) return;
  if (entry instanceof Tape) verdicts.tapes.delete(entry);
  else verdicts.remove(entry);
  if (verdicts.isEmpty) client.verdicts = undefined;
}
