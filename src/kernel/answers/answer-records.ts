/**
 * AnswerRecords: the last queries of one namespace that the kernel has answered, in memory that the program writes: which
 * entry, and when. The program replaces the oldest record and tells no one, so reading is optional and costs a query
 * nothing; what was replaced in between is counted.
 */
import { RECORDS, SPACE } from "./layout.ts";

/** The program's clock counts 2^20 ns. */
const TICK_BITS = 20n;
const TICK_MS = 1.048_576;
/** A time of this age is rather one in the future: the clock had not yet been read when the record was made. */
const AGE_MAX = 0x8000_0000;
/** What a record has of the generation. */
export const GENERATION_BITS = 0xff;

export class AnswerRecords {
  readonly #view: DataView;
  #isOn = false;
  /** The number of the next query to be read. */
  #next = 0;

  /** Takes the records of a space that nothing uses yet. */
  constructor(view: DataView) {
    this.#view = view;
    this.isOn = false;
    for (let index = 0; index < RECORDS; index++) view.setBigUint64(SPACE.records + index * 8, 0n, true);
  }

  get isOn(): boolean {
    return this.#isOn;
  }

  /** Applies from now on. */
  set isOn(isOn: boolean) {
    if (isOn && !this.#isOn) this.#next = this.#answered;
    this.#isOn = isOn;
    this.#view.setUint16(SPACE.isRecording, Number(isOn), true);
  }

  /**
   * Passes the entry, the last bits of its generation, and the time of each query since the last call, oldest first. Returns
   * how many others there were, with those of which `visit` says that they are gone.
   */
  take(visit: (entry: number, generation: number, atMs: number) => boolean): number {
    const answered = this.#answered;
    const from = Math.max(this.#next, answered - RECORDS);
    let lost = from - this.#next;
    this.#next = answered;
    if (!this.#isOn || from === answered) return 0;
    const [nowMs, now] = [performance.now(), Number(BigInt.asUintN(32, process.hrtime.bigint() >> TICK_BITS))];
    for (let number = from; number < answered; number++) {
      const at = SPACE.records + (number % RECORDS) * 8;
      const [low, time] = [this.#view.getUint32(at, true), this.#view.getUint32(at + 4, true)];
      const lap = (Math.floor(number / RECORDS) + 1) & 0xff;
      const age = (now - time) >>> 0;
      // Another lap has been recorded meanwhile, or this one not yet.
      const atMs = nowMs - (age < AGE_MAX ? age * TICK_MS : 0);
      if (low >>> 24 !== lap || !visit(low & 0xffff, (low >>> 16) & GENERATION_BITS, atMs)) lost++;
    }
    return lost;
  }

  get #answered(): number {
    return Number(this.#view.getBigUint64(SPACE.answered, true));
  }
}
