/**
 * NewNames: how many names that were not queried before each wildcard of a policy has allowed a container in this minute. Whoever
 * sends data in names needs a new one for each piece.
 */
import type { PolicyRule } from "../model/policy-rule.ts";

const MINUTE_MS = 60_000;
/** Of all wildcards. Then the one that was queried least recently is new again. */
const NAMES_MAX = 2_000;

interface Minute {
  sinceMs: number;
  count: number;
}

export class NewNames {
  readonly #perMinute: number;
  readonly #known = new Set<string>();
  readonly #minutes = new Map<PolicyRule, Minute>();

  constructor(perMinute: number) {
    this.#perMinute = perMinute;
  }

  /** Whether the name may be queried. `isPeek`: it is not, so it does not count. */
  admit(rule: PolicyRule, name: string, nowMs: number, isPeek: boolean): boolean {
    const known = this.#known;
    if (known.has(name)) {
      if (isPeek) return true;
      known.delete(name);
      known.add(name);
      return true;
    }
    const minute = this.#minutes.get(rule) ?? { sinceMs: nowMs, count: 0 };
    const isOver = nowMs - minute.sinceMs >= MINUTE_MS;
    if (isPeek) return isOver || minute.count < this.#perMinute;
    this.#minutes.set(rule, minute);
    if (isOver) [minute.sinceMs, minute.count] = [nowMs, 0];
    if (minute.count >= this.#perMinute) return false;
    minute.count++;
    if (known.size >= NAMES_MAX) {
      const [oldest = ""] = known;
      known.delete(oldest);
    }
    known.add(name);
    return true;
  }
}
