/**
 * Cells: byte strings of many lengths in one piece of memory, in linked cells of one size. Stored strings are not
 * objects, so the garbage collector does not visit them, however many there are. Any free cell fits, so nothing is ever
 * moved to make room.
 *
 * Only pages that were written take memory. Cell 0 is unused: it means none.
 */
const CELL_BYTES = 64;
/** Memory of one cell, with its link. */
export const CELL_COST = CELL_BYTES + Int32Array.BYTES_PER_ELEMENT;

export function cellsFor(bytes: number): number {
  return Math.ceil(bytes / CELL_BYTES);
}

export class Cells {
  readonly #bytes: Uint8Array;
  /** The next cell of a chain, or of the free list. */
  readonly #next: Int32Array;
  #firstFree = 0;
  #neverUsed = 1;
  #left: number;

  constructor(count: number) {
    this.#bytes = new Uint8Array((count + 1) * CELL_BYTES);
    this.#next = new Int32Array(count + 1);
    this.#left = count;
  }

  get count(): number {
    return this.#next.length - 1;
  }

  /** Number of free cells. */
  get available(): number {
    return this.#left;
  }

  /** Stores the first `length` bytes, for which there must be room; returns the first cell of the chain. */
  store(bytes: Uint8Array, length: number): number {
    let first = 0;
    let last = 0;
    for (let at = 0; at < length;) {
      const cell = this.#take();
      const to = cell * CELL_BYTES - at;
      const end = Math.min(length, at + CELL_BYTES);
      for (; at < end; at++) this.#bytes[to + at] = bytes[at] as number;
      if (first === 0) first = cell;
      else this.#next[last] = cell;
      last = cell;
    }
    this.#next[last] = 0;
    return first;
  }

  /** Copies `length` bytes of a chain, after the first `skip` bytes. */
  copy(first: number, skip: number, length: number, to: Uint8Array): void {
    let cell = first;
    let within = skip;
    for (; within >= CELL_BYTES; within -= CELL_BYTES) cell = this.#next[cell] as number;
    const bytes = this.#bytes;
    for (let at = 0; at < length; cell = this.#next[cell] as number) {
      const from = cell * CELL_BYTES + within - at;
      const end = Math.min(length, at + CELL_BYTES - within);
      for (; at < end; at++) to[at] = bytes[from + at] as number;
      within = 0;
    }
  }

  /** Whether a chain begins with these bytes. */
  startsWith(first: number, other: Uint8Array, length: number): boolean {
    const bytes = this.#bytes;
    for (let at = 0, cell = first; at < length; cell = this.#next[cell] as number) {
      const from = cell * CELL_BYTES - at;
      const end = Math.min(length, at + CELL_BYTES);
      for (; at < end; at++) if (bytes[from + at] !== other[at]) return false;
    }
    return true;
  }

  free(first: number): void {
    for (let cell = first; cell !== 0;) {
      const next = this.#next[cell] as number;
      this.#next[cell] = this.#firstFree;
      this.#firstFree = cell;
      this.#left++;
      cell = next;
    }
  }

  clear(): void {
    this.#firstFree = 0;
    this.#neverUsed = 1;
    this.#left = this.count;
  }

  #take(): number {
    if (this.#left === 0) throw new Error("no free cell is left");
    this.#left--;
    const free = this.#firstFree;
    if (free === 0) return this.#neverUsed++;
    this.#firstFree = this.#next[free] as number;
    return free;
  }
}
