/**
 * Streak: consecutive observations of one kind: how many, since when, whether by one client alone, and whether of one zone.
 */
export class Streak {
  count = 0;
  sinceMs = 0;
  /** The client of the first one. */
  firstClient: number | undefined;
  /** Observations of other clients, and since when. */
  others = 0;
  othersSinceMs = 0;
  /** Whether names of different zones were observed, by all clients and by the others. */
  hasManyZones = false;
  haveOthersManyZones = false;
  #zone = 0;
  #zoneOfOthers = 0;

  add(nowMs: number, client: number, zone = 0): void {
    if (this.count === 0) {
      this.firstClient = client;
      this.sinceMs = nowMs;
      this.#zone = zone;
    }
    this.count++;
    this.hasManyZones ||= zone !== this.#zone;
    if (client === this.firstClient) return;
    if (this.others === 0) [this.othersSinceMs, this.#zoneOfOthers] = [nowMs, zone];
    this.others++;
    this.haveOthersManyZones ||= zone !== this.#zoneOfOthers;
  }

  clear(): void {
    this.count = this.others = 0;
    this.hasManyZones = this.haveOthersManyZones = false;
    this.firstClient = undefined;
  }
}
