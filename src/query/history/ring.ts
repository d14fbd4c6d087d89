/**
 * Ring: the last records of one query history, in one buffer of fixed size. A record has the length of its name and
 * addresses and is contiguous; if it does not fit before the end of the buffer, it starts at the beginning, over the oldest records.
 *
 *   not wrapped:  |....[oldest  ...  newest]........|        wrapped:  |[  newest].....[oldest  ...  ]..|
 *                      tail                 head                                 head   tail         wrapEnd
 */
import { LIMITS } from "../../base/limits.ts";
import { addressSize } from "./answer-addresses.ts";

/** Arrival (8 bytes), duration, TTL, type and number of answers, and one word of single bytes; then name and addresses. */
const FIXED_BYTES = 24;
/** The word of a record whose upper half is its type. */
const KINDS_WORD = 4;
/** The word of a record whose lowest byte is the length of its name, with the number of its addresses among the flags. */
const LENGTHS_WORD = 5;
/** The two bits of that word with the number of addresses. */
export const ADDRESSES_SHIFT = 21;
const ADDRESSES_MASK = 3;

export class Ring {
  readonly bytes = new Uint8Array(LIMITS.historyBytes);
  readonly words = new Uint32Array(this.bytes.buffer);
  /** For times: a record begins at a multiple of eight. */
  readonly doubles = new Float64Array(this.bytes.buffer);
  /** Number of records. */
  count = 0;
  #head = 0;
  #tail = 0;
  #wrapEnd = 0;
  #isWrapped = false;

  /** Makes room for a record with a name and addresses of this length by dropping the oldest; returns its offset. */
  reserve(length: number): number {
    const size = sizeOf(length);
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

  /** Offset of the oldest record. */
  get oldest(): number {
    return this.#tail;
  }

  /** Offset of the record after the one at `at`. */
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

  /** The number of addresses behind the name of a record. */
  addressesAt(at: number): number {
    return ((this.words[(at >> 2) + LENGTHS_WORD] as number) >>> ADDRESSES_SHIFT) & ADDRESSES_MASK;
  }

  #sizeAt(at: number): number {
    const count = this.addressesAt(at);
    const addresses = count === 0 ? 0 : count * addressSize((this.words[(at >> 2) + KINDS_WORD] as number) >>> 16);
    return sizeOf(((this.words[(at >> 2) + LENGTHS_WORD] as number) & 0xff) + addresses);
  }
}

/** Offset of the name in a record. */
export const NAME_AT = FIXED_BYTES;

function sizeOf(length: number): number {
  return FIXED_BYTES + ((length + 7) & ~7);
}
