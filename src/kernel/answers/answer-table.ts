/**
 * AnswerTable: the kernel's table of answers until the names change, which all namespaces share. What has ended is deleted a little
 * at a time, so that nobody waits for the thousands of names of another container.
 */
import { guard } from "../../base/lib/guard.ts";
import { Pool, type PoolLimits, type Share } from "../../base/lib/share.ts";
import { inSlices } from "../../base/lib/slices.ts";
import { ElementWriter, MAP_FLAG, MAP_TYPE, createMap, deleteElements, readElement } from "../bpf.ts";
import { closeQuietly } from "../libc.ts";
import type { KeyList } from "./key-list.ts";
import { KEY_BYTES, VALUE_BYTES } from "./layout.ts";

/** With one system call, in a twentieth of a millisecond. */
const DELETED_AT_ONCE = 64;

export class AnswerTable {
  readonly map: number;
  /** Writes the next entry. */
  readonly writer: ElementWriter;
  readonly #pool: Pool;
  #isClosed = false;

  /** For so many namespaces. Throws a SystemFault if the kernel refuses. */
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

  /** How many entries one namespace has. */
  open(): Share {
    return this.#pool.open();
  }

  read(key: Uint8Array, into: Uint8Array): boolean {
    return readElement(this.map, key, into);
  }

  /** Deletes entries whose generation has ended, the first of them at once, and gives back their share. */
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
