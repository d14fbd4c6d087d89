/**
 * RuleUse: a rule for one client: how many of its queries have matched, whether the rule applies to the next one, and which
 * reply of a sequence is next. A query for A and one for AAAA are counted apart, because one lookup sends both.
 */
import type { ContainerTally, Rule } from "./rule.ts";

/** States by type, and by name where names are counted apart. The oldest goes first. */
const STATES_MAX = 1_000;
const SEED = 0x2545f491;

/** Of the queries of one type. */
interface State {
  matched: number;
  applied: number;
}

export class RuleUse {
  readonly rule: Rule;
  readonly tally: ContainerTally;
  readonly #states = new Map<number | string, State>();
  #random: number;

  constructor(rule: Rule, containerId: string) {
    this.rule = rule;
    this.tally = rule.tally.of(containerId);
    this.#random = (rule.limits.seed ?? SEED) | 0;
  }

  /** Whether the rule applies to a query that it matches. `isPeek`: the query does not count. */
  apply(type: number, name: string, isPeek: boolean): boolean {
    const { count, every, probability, isPerName } = this.rule.limits;
    const state = this.#state(isPerName === true ? `${type} ${name}` : type, isPeek);
    const random = this.#random;
    const applies =
      (count === undefined || state.applied < count) &&
      (every === undefined || state.matched % every === 0) &&
      (probability === undefined || this.#draw() < probability);
    if (isPeek) {
      this.#random = random;
      return applies;
    }
    state.matched++;
    this.tally.matched++;
    if (!applies) return false;
    state.applied++;
    this.tally.applied++;
    return true;
  }

  /** How often the rule has applied to queries of a type before the present one, which counts unless it is a peek. */
  appliedBefore(type: number, name: string, isPeek: boolean): number {
    const { applied } = this.#state(this.rule.limits.isPerName === true ? `${type} ${name}` : type, true);
    return isPeek ? applied : applied - 1;
  }

  /** A number from 0 to 1: the same sequence for the same seed. */
  draw(isPeek: boolean): number {
    const before = this.#random;
    const drawn = this.#draw();
    if (isPeek) this.#random = before;
    return drawn;
  }

  #state(key: number | string, isPeek: boolean): State {
    const known = this.#states.get(key);
    if (known !== undefined) return known;
    const state = { matched: 0, applied: 0 };
    if (isPeek) return state;
    const [oldest] = this.#states.keys();
    if (this.#states.size >= STATES_MAX && oldest !== undefined) this.#states.delete(oldest);
    this.#states.set(key, state);
    return state;
  }

  /** Mulberry32: small, fast and good enough for faults. */
  #draw(): number {
    this.#random = (this.#random + 0x6d2b79f5) | 0;
    let t = Math.imul(this.#random ^ (this.#random >>> 15), 1 | this.#random);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  }
}
