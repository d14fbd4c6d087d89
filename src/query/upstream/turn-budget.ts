/**
 * TurnBudget: how many upstream replies are processed per turn of the event loop, where a long one counts as several.
 * Otherwise the replies for one container that queries as fast as it can would delay the queries of all others. The rest
 * stays in the socket until the next turn.
 */
export class TurnBudget {
  readonly #whole: number;
  #left: number;
  #isArmed = false;

  constructor(whole: number) {
    this.#whole = this.#left = whole;
  }

  get left(): number {
    return this.#left;
  }

  spend(count: number): void {
    this.#left -= count;
    if (this.#isArmed) return;
    this.#isArmed = true;
    setImmediate(() => {
      this.#isArmed = false;
      this.#left = this.#whole;
    });
  }
}
