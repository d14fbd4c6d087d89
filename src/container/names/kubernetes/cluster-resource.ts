/**
 * ClusterResource: the objects of one resource as the API sends them, a list and then changes, in a table. An object that is
 * not valid is left out and named.
 */
import { KeyProblems } from "../source/key-problems.ts";
import { type ObjectName, nameOf } from "./cluster-objects.ts";

interface ObjectTable<T> {
  put(object: T): void;
  remove(named: ObjectName): void;
  has(named: ObjectName): boolean;
}

interface ResourceForm<T, U extends ObjectTable<T>> {
  /** As in a message. */
  readonly kind: string;
  readonly newTable: () => U;
  /** Undefined for an object that has no names. Throws an Error with the reason for one that is not valid. */
  readonly read: (object: unknown) => T | undefined;
  readonly isFull: (table: U) => boolean;
}

export class ClusterResource<T extends ObjectName, U extends ObjectTable<T>> {
  readonly problems = new KeyProblems();
  readonly #form: ResourceForm<T, U>;
  readonly #onChange: () => void;
  #table: U;
  /** What a list has brought so far. */
  #listed: U | undefined;
  #hasList = false;
  #refused = 0;

  constructor(form: ResourceForm<T, U>, onChange: () => void) {
    this.#form = form;
    this.#onChange = onChange;
    this.#table = form.newTable();
  }

  get table(): U {
    return this.#table;
  }

  get hasList(): boolean {
    return this.#hasList;
  }

  /** Objects that are left out because there are too many: those of the last list, or at least one that came later. */
  get refused(): number {
    return this.#refused;
  }

  get isFull(): boolean {
    return this.#form.isFull(this.#listed ?? this.#table);
  }

  begin(): void {
    this.#listed = this.#form.newTable();
    this.#refused = 0;
    this.problems.clear();
  }

  commit(unlisted: number): void {
    this.#refused += unlisted;
    this.#table = this.#listed ?? this.#table;
    this.#listed = undefined;
    this.#hasList = true;
    this.#onChange();
  }

  put(object: unknown): void {
    const table = this.#listed ?? this.#table;
    const named = nameOf(object);
    this.problems.forget(this.#keyOf(named));
    try {
      const read = this.#form.read(object);
      if (read === undefined) {
        if (named !== undefined) table.remove(named);
      } else if (!this.#form.isFull(table) || table.has(read)) table.put(read);
      // Later the same one may come again and again.
      else this.#refused = table === this.#listed ? this.#refused + 1 : Math.max(1, this.#refused);
    } catch (error) {
      if (named !== undefined) table.remove(named);
      this.problems.note(this.#keyOf(named), error);
    }
    if (table === this.#table) this.#onChange();
  }

  remove(object: unknown): void {
    const table = this.#listed ?? this.#table;
    const named = nameOf(object);
    if (named === undefined) return;
    this.problems.forget(this.#keyOf(named));
    table.remove(named);
    if (table === this.#table) this.#onChange();
  }

  #keyOf(named: ObjectName | undefined): string {
    return named === undefined ? `a ${this.#form.kind}` : `${this.#form.kind} ${named.namespace}/${named.name}`;
  }
}
