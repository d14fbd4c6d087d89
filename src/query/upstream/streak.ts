/**
 * Streak: consecutive observations of one kind: how many, since when, and whether by one client alone.
 */
export class Streak {
  count = 0;
  sinceMs = 0;
  /** The client of the first one. */
  firstClient: number | undefined;
  /** Observations of other clients, and since when. */
  others = 0;
  othersSinceMs = 0;

  add(nowMs: number, client: number): void {
    if (this.count === 0) {
      this.firstClient = client;
      this.sinceMs = nowMs;
    }
    this.count++;
    if (client === this.firstClient) return;
    if (this.others === 0) this.othersSinceMs = nowMs;
    this.others++;
  }

  clear(): void {
    this.count = this.others = 0;
    this.firstClient = undefined;
  }
}
