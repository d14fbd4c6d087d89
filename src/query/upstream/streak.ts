/**
 * Witnesses: how often something was seen in a row, since when, and whether by one container alone.
 */
export class Streak {
  count = 0;
  sinceMs = 0;
  /** Who saw it first. */
  firstClient: number | undefined;
  /** How often others did, and since when. */
  others = 0;
  othersSinceMs = 0;

  add(nowMs: number, by: number): void {
    if (this.count === 0) {
      this.firstClient = by;
      this.sinceMs = nowMs;
    }
    this.count++;
    if (by === this.firstClient) return;
    if (this.others === 0) this.othersSinceMs = nowMs;
    this.others++;
  }

  clear(): void {
    this.count = this.others = 0;
    this.firstClient = undefined;
  }
}
