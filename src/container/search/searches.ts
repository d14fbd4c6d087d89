/**
 * Searches: the containers that ask for the search list of their project, each with its SearchMode.
 */
import { openInRoot } from "../../kernel/libc.ts";
import type { AttachMode } from "../attach/attach-mode.ts";
import type { ContainerFact } from "../facts/fact.ts";
import type { Journal } from "../kind/journal.ts";
import type { SearchList } from "../kind/resolv-conf-text.ts";
import { type EngineHost, isContainerPath } from "../namespace/engine-host.ts";
import { type SearchSettings, projectSearch } from "./project-search.ts";
import { SearchMode } from "./search-mode.ts";

export interface SearchesParts {
  readonly journal: Journal;
  readonly host: () => EngineHost;
  /** What is to be said of the container has changed. */
  readonly onChange: (containerId: string) => void;
}

interface KnownSearch {
  readonly startedAt: string;
  readonly base: AttachMode;
  readonly mode: SearchMode;
}

export class Searches {
  readonly #parts: SearchesParts;
  readonly #known = new Map<string, KnownSearch>();
  #settings: SearchSettings;

  constructor(parts: SearchesParts, settings: SearchSettings) {
    this.#parts = parts;
    this.#settings = settings;
  }

  /** For decisions from now on. */
  configure(settings: SearchSettings): void {
    this.#settings = settings;
  }

  /** Whether the container asks for the list of its project. */
  isAskedBy(fact: ContainerFact): boolean {
    return projectSearch(fact, this.#settings) !== undefined;
  }

  /** The mode of this start of a container that asks for the list of its project; `base` for all others. */
  modeFor(fact: ContainerFact, base: AttachMode): AttachMode {
    const search = projectSearch(fact, this.#settings);
    if (search === undefined) {
      this.forget(fact.id);
      return base;
    }
    const known = this.#known.get(fact.id);
    if (known?.startedAt === fact.startedAt && known.base === base) {
      known.mode.update(search);
      return known.mode;
    }
    const mode = new SearchMode(fact, search, {
      base,
      journal: this.#parts.journal,
      open: this.#openerOf(fact),
      onChange: () => this.#parts.onChange(fact.id),
    });
    this.#known.set(fact.id, { startedAt: fact.startedAt, base, mode });
    return mode;
  }

  /** For a container whose file is written in another way. */
  listOf(fact: ContainerFact): SearchList | undefined {
    const search = projectSearch(fact, this.#settings);
    return search !== undefined && "list" in search ? search.list : undefined;
  }

  /** Why a container that asks for it has no such list; `elsewhere` says why nobody writes it here. */
  problemOf(fact: ContainerFact, elsewhere?: string): string | undefined {
    const search = projectSearch(fact, this.#settings);
    if (search === undefined) return undefined;
    if ("problem" in search) return search.problem;
    return elsewhere ?? this.#known.get(fact.id)?.mode.problem;
  }

  /** Whether what a previous run wrote is to stay. */
  isKept(fact: ContainerFact): boolean {
    const { labels, source } = fact.imageLabels;
    if (source !== "awaited") return this.#known.has(fact.id);
    return projectSearch({ ...fact, labels }, this.#settings) !== undefined;
  }

  forget(containerId: string): void {
    this.#known.delete(containerId);
  }

  #openerOf({ id, resolvConfPath: path = "" }: ContainerFact): ((flags: number) => number) | undefined {
    if (!isContainerPath(path, id)) return undefined;
    return (flags) => openInRoot(this.#parts.host().root, path, flags);
  }
}
