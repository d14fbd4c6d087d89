/**
 * AskedQuestions: which questions a namespace has asked in the present turn, by a number for each. So an answer is put into the
 * kernel's table when it is asked for again, and a flood of new names writes nothing. Two questions may have the same number, or
 * displace each other: that costs them a query to the process, or an entry that is not needed.
 */
const FIRST = 256;
const MOST = 4_096;
/** Slots in which a question may be. */
const WAYS = 4;
/** A slot has the upper bits of the question, of the turn, and whether the kernel has its answer. The lower bits say which slots. */
const QUESTION_BITS = 0xffff_fc00;
const TURN_BITS = 0x1ff << 1;
const SETTLED = 1;

export class AskedQuestions {
  #slots = new Uint32Array(FIRST);
  /** How many have displaced others of the same turn since the last growth. */
  #crowded = 0;
  /** The slot of the last question. */
  #at = 0;

  /** Notes the question; returns whether it was asked before in this turn, and the kernel does not have its answer. */
  isAskedAgain(question: number, turn: number): boolean {
    const slots = this.#slots;
    const present = (turn << 1) & TURN_BITS;
    const number = ((question & QUESTION_BITS) | present) >>> 0;
    const first = question & (slots.length - WAYS);
    let free = -1;
    for (let at = first; at < first + WAYS; at++) {
      const known = slots[at] as number;
      if ((known & ~SETTLED) >>> 0 === number) {
        this.#at = at;
        return (known & SETTLED) === 0;
      }
      if (known === 0 || isOver(known, present)) free = at;
    }
    const isCrowded = free === -1;
    slots[isCrowded ? first + (this.#crowded & (WAYS - 1)) : free] = number;
    if (isCrowded) this.#crowd();
    return false;
  }

  /** The kernel has the answer to the last question. */
  settle(): void {
    this.#slots[this.#at] = (this.#slots[this.#at] as number) | SETTLED;
  }

  #crowd(): void {
    const { length } = this.#slots;
    if (++this.#crowded < length / WAYS || length === MOST) return;
    this.#crowded = 0;
    this.#slots = new Uint32Array(2 * length);
  }
}

/** Questions of one time may be in two turns, because those of each name begin at another time. */
function isOver(known: number, present: number): boolean {
  const behind = (present - (known & TURN_BITS)) & TURN_BITS;
  return behind !== 0 && behind !== 1 << 1 && behind !== TURN_BITS;
}
