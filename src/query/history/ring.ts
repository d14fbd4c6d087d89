/**
 * Ring: the last records of one history, in one piece of memory that is never added to. A record is as long as its name
 * and lies in one piece; where the end of the memory has no room for it, it begins at the start again, over the oldest.
 *
 *   not wrapped:  |....[oldest  ...  newest]........|        wrapped:  |[  newest].....[oldest  ...  ]..|
 *                      tail                 head                                 head   tail         wrapEnd
 */
import { LIMITS } from "../../base/limits.ts";

/** Arrival (8 bytes), duration, TTL, type with answers, and what fits into a byte each; then the name. */
const FIXED_BYTES = 24;
/** The word of a record whose lowest byte is the length of its name. */
const LENGTHS_WORD = 5;

export class Ring {
  readonly bytes = new Uint8Array(LIMITS.historyBytes);
  readonly words = new Uint32Array(this.bytes.buffer);
  /** For times: a record begins at a multiple of eight. */
  readonly doubles = new Float64Array(this.bytes.buffer);
  /** Records that are in it. */
  count = 0;
  #head = 0;
  #tail = 0;
  #wrapEnd = 0;
  #isWrapped = false;

  /** Makes room for a record with a name so long, at the cost of the oldest ones; where it begins. */
  reserve(nameLength: number): number {
    const size = sizeOf(nameLength);
    for (;;) {
      if (this.#isWrapped) {
        if (this.#head + size <= this.#tail) break;
        this.#dropOldest();
      } else if (this.#head + size <= LIMITS.historyBytes) {
        break;
      } else {
        this.#wrapEnd = this.#head;
        this.#head = 0;
        this.#isWrapped = true;
      }
    }
    const at = this.#head;
    this.#head += size;
    this.count++;
    return at;
  }

  /** Where the oldest record begins. */
  get oldest(): number {
    return this.#tail;
  }

  /** Where the record begins that came after the one at `at`. */
  after(at: number): number {
    const next = at + this.#sizeAt(at);
    return this.#isWrapped && next >= this.#wrapEnd && at >= this.#tail ? 0 : next;
  }

  #dropOldest(): void {
    this.#tail += this.#sizeAt(this.#tail);
    this.count--;
    if (this.#tail < this.#wrapEnd) return;
    this.#tail = 0;
    this.#isWrapped = false;
  }

  #sizeAt(at: number): number {
    return sizeOf((this.words[(at >> 2) + LENGTHS_WORD] as number) & 0xff);
  }
}

/** Behind which byte of a record its name stands. */
export const NAME_AT = FIXED_BYTES;

function sizeOf(nameLength: number): number {
  return FIXED_BYTES + ((nameLength + 7) & ~7);
}
