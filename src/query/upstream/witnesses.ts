/**
 * Witnesses: how often something was seen in a row, since when, and whether by one container alone.
 */
export class Witnesses {
  count = 0;
  sinceMs = 0;
  /** Who saw it first. */
  first: number | undefined;
  /** How often others did, and since when. */
  others = 0;
  othersSinceMs = 0;

  note(nowMs: number, by: number): void {
    if (this.count === 0) {
      this.first = by;
      this.sinceMs = nowMs;
    }
    this.count++;
    if (by === this.first) return;
    if (this.others === 0) this.othersSinceMs = nowMs;
    this.others++;
  }

  clear(): void {
    this.count = this.others = 0;
    this.first = undefined;
  }
}
