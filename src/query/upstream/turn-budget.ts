/**
 * TurnBudget: how many replies may be worked off in one round of the event loop. What servers bring for a container that
 * asks as fast as it can would otherwise keep everybody else's questions waiting; what is left stays in its socket until the
 * next round.
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
