/**
 * AnswerTable: the kernel's table of answers that are valid until the names change; all namespaces share it. Entries of ended generations
 * are deleted a few at a time, so that nothing waits for the thousands of names of another container.
 */
import { guard } from "../../../base/lib/guard.ts";
import { Pool, type PoolLimits, type Share } from "../../../base/lib/share.ts";
import { inSlices } from "../../../base/lib/slices.ts";
import { ElementWriter, MAP_FLAG, MAP_TYPE, createMap, deleteElements, readElement } from "../../../kernel/bpf.ts";
import { closeQuietly } from "../../../kernel/libc.ts";
import type { KeyList } from "./key-list.ts";
import { KEY_BYTES, VALUE_BYTES, COUNT_BYTES, KINDS } from "./layout.ts";
import { LOCAL_SOURCE } from "../../../base/model/local-source.ts";
import type { AnswerKind } from "./kernel-answer.ts";

/** One system call deletes these, in a twentieth of a millisecond. */
const DELETED_AT_ONCE = 64;

export class AnswerTable {
  readonly map: number;
  /** Writes the next entry. */
  readonly writer: ElementWriter;
  readonly #pool: Pool;
  #isClosed = false;

  /** `spaces`: the number of namespaces. Throws a SystemFault if the kernel refuses. */
  constructor(spaces: number, limits: PoolLimits) {
    this.#pool = new Pool(limits);
    this.map = createMap({
      name: "dns11_answers",
      type: MAP_TYPE.HASH,
      keyBytes: KEY_BYTES,
      valueBytes: VALUE_BYTES,
      entries: limits.whole + limits.always * spaces,
      flags: MAP_FLAG.NO_PREALLOC,
    });
    this.writer = new ElementWriter(this.map, KEY_BYTES, VALUE_BYTES);
  }

  /** The entries of one namespace count against its share. */
  open(): Share {
    return this.#pool.open();
  }

  read(key: Uint8Array, into: Uint8Array): boolean {
    return readElement(this.map, key, into);
  }

  /** Deletes entries whose generation has ended, the first of them at once, and releases their share. */
  delete(keys: KeyList, share: Share): void {
    inSlices(this.#deleting(keys, share)).catch((error: unknown) => guard.report(error, "timer"));
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    closeQuietly(this.map);
  }

  *#deleting({ bytes, count }: KeyList, share: Share): Generator<void> {
    for (let from = 0; from < count && !this.#isClosed; from += DELETED_AT_ONCE) {
      const some = Math.min(DELETED_AT_ONCE, count - from);
      deleteElements(this.map, bytes.subarray(from * KEY_BYTES), KEY_BYTES, some);
      share.give(some);
      yield;
    }
  }
}

/** The kind of dns11's own probes, which are not counted. */
export const OWN_KIND = 0;
const REST = KINDS - 1;

/**
 * Counts the answers of all namespaces by kind, in memory that the program writes. There are few kinds, because few types and sources have
 * answers that are repeated; if there are too many, the rest shares one kind.
 */
export class AnswerKinds {
  readonly #memory: DataView;
  readonly #numbers = new Map<string, number>();
  readonly #kinds: AnswerKind[] = [];
  /** The number that was looked up last: after a change of names most lookups are for the same one. */
  #last: number = REST;
  /** The number of answers of each kind that were taken. */
  readonly #taken = new Float64Array(KINDS);

  constructor(memory: ArrayBuffer) {
    this.#memory = new DataView(memory);
    this.#kinds[REST] = { type: 0, rcode: 0, source: LOCAL_SOURCE.rule };
  }

  /** The number of a kind, for the program. */
  numberOf({ type, rcode, source }: AnswerKind): number {
    const last = this.#kinds[this.#last];
    if (last?.type === type && last.rcode === rcode && last.source === source) return this.#last;
    const key = `${type} ${rcode} ${source}`;
    const known = this.#numbers.get(key);
    if (known !== undefined) return (this.#last = known);
    const number = this.#numbers.size + 1;
    if (number >= REST) return REST;
    this.#numbers.set(key, number);
    this.#kinds[number] = { type, rcode, source };
    return (this.#last = number);
  }

  /** The kind of a number; undefined for dns11's own probes. */
  kindOf(number: number): AnswerKind | undefined {
    return this.#kinds[number];
  }

  /** Passes the answers since the last call, by kind. */
  takeCounts(visit: (kind: AnswerKind, answers: number) => void): void {
    for (const [number, kind] of this.#kinds.entries()) {
      if (kind === undefined) continue;
      const answered = Number(this.#memory.getBigUint64(number * COUNT_BYTES, true));
      const fresh = answered - (this.#taken[number] as number);
      if (fresh === 0) continue;
      this.#taken[number] = answered;
      visit(kind, fresh);
    }
  }
}
