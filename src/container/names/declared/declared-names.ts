/**
 * DeclaredNames: the names that the operator declares, in the settings and in records files. A container finds those of
 * its Compose project first, then those of its networks, then those for everybody; the first that has a name is all
 * that counts for it.
 */
import { LOCAL_SOURCE } from "../../../base/model/local-source.ts";
import { type DeclaredName, type RecordScope } from "../../../base/model/declared-name.ts";
import type { LabelPolicy } from "../../../base/model/label-policy.ts";
import {
  MISS,
  type NameSearch,
  type OwnName,
  type QuestionName,
  type VisibleNames,
} from "../../../base/model/visible-names.ts";
import { projectOf } from "../../facts/compose.ts";
import type { ContainerFact } from "../../facts/fact.ts";
import type { NameSettings } from "../source/name-settings.ts";
import type { NameSource } from "../source/name-source.ts";
import { DeclaredTable } from "./declared-table.ts";

class VisibleDeclarations implements VisibleNames {
  readonly places: readonly string[] = [];
  readonly kind = LOCAL_SOURCE.declared;
  readonly #tables: readonly DeclaredTable[];

  /** In order of precedence. */
  constructor(tables: readonly DeclaredTable[]) {
    this.#tables = tables;
  }

  find(name: QuestionName, search: NameSearch): number {
    for (const table of this.#tables) {
      const entry = table.find(name);
      if (entry === undefined) continue;
      search.trace?.record("names", entry.origin);
      return search.declared(entry);
    }
    search.trace?.record("names", "not a declared name");
    return MISS;
  }

  *list(): Iterable<OwnName> {
    for (const table of this.#tables) for (const entry of table.entries()) yield entry.listed();
  }

  /** Reverse names are declared as names. */
  pointer(): undefined {
    return undefined;
  }
}

export class DeclaredNames implements NameSource {
  readonly #labels: LabelPolicy;
  readonly #onChange: () => void;
  #tables = new Map<string, DeclaredTable>();

  constructor({ labels }: Pick<NameSettings, "labels">, onChange: () => void) {
    this.#labels = labels;
    this.#onChange = onChange;
  }

  /** Sets all names. Existing views do not change. */
  set(names: readonly DeclaredName[]): void {
    const tables = new Map<string, DeclaredTable>();
    for (const each of names) {
      const key = keyOf(each.scope);
      const table = tables.get(key) ?? new DeclaredTable();
      table.add(each);
      tables.set(key, table);
    }
    this.#tables = tables;
    this.#onChange();
  }

  succeed(current: DeclaredNames): void {
    this.#tables = current.#tables;
  }

  namesFor(container: ContainerFact): VisibleNames | undefined {
    if (this.#tables.size === 0) return undefined;
    const project = projectOf(container, this.#labels);
    const networks = container.endpoints.map(({ networkName }) => networkName).toSorted();
    const scopes: readonly RecordScope[] = [
      ...(project === undefined ? [] : [{ kind: "project" as const, name: project }]),
      ...networks.map((name) => ({ kind: "network" as const, name })),
      EVERYBODY,
    ];
    return this.#visibleIn(scopes);
  }

  /** What the host resolves, which is no container. */
  forEverybody(): VisibleNames | undefined {
    return this.#visibleIn([EVERYBODY]);
  }

  #visibleIn(scopes: readonly RecordScope[]): VisibleNames | undefined {
    const tables = scopes.flatMap((scope) => this.#tables.get(keyOf(scope)) ?? []);
    return tables.length === 0 ? undefined : new VisibleDeclarations(tables);
  }
}

const EVERYBODY: RecordScope = { kind: "everybody", name: "" };

function keyOf({ kind, name }: RecordScope): string {
  return `${kind} ${name}`;
}
