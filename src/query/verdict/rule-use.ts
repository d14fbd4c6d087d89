/**
 * RuleUse: a rule for one client: how many of its queries have matched, whether the rule applies to the next one, and which
 * reply of a sequence is next. A query for A and one for AAAA are counted apart, because one lookup sends both.
 */
import type { QuestionName } from "../../base/model/visible-names.ts";
import type { ContainerTally, Rule } from "./rule.ts";

/** States of all rules of a client. Beyond that, the oldest of a rule makes room, or what is new is not remembered. */
const STATES_MAX = 1_000;
const SEED = 0x2545f491;

/** StateBudget: how many states the rules of one client may still have. */
export class StateBudget {
  left = STATES_MAX;
}

/** The queries of one type, or of one type and name. */
interface State {
  matched: number;
  applied: number;
}

type Key = number | string;

export class RuleUse {
  readonly rule: Rule;
  readonly #tally: ContainerTally | undefined;
  readonly #budget: StateBudget;
  readonly #states = new Map<Key, State>();
  #random: number;

  constructor(rule: Rule, containerId: string, budget: StateBudget) {
    this.rule = rule;
    this.#tally = rule.tally.of(containerId);
    this.#budget = budget;
    this.#random = (rule.limits.seed ?? SEED) | 0;
  }

  /** What a query is counted under. Names are told apart by their hash. */
  keyOf(type: number, { hashOf, labelCount }: QuestionName): Key {
    return this.rule.limits.isPerName === true ? `${type} ${hashOf[labelCount]}` : type;
  }

  /** Whether the rule applies to a query that it matches. `isPeek`: the query does not count. */
  apply(key: Key, isPeek: boolean): boolean {
    const { count, every, probability } = this.rule.limits;
    const state = this.#state(key, isPeek);
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
    if (applies) state.applied++;
    this.#count(applies);
    return applies;
  }

  /** A query to which the rule has applied. */
  count(): void {
    this.#count(true);
  }

  /** How often the rule has applied to such queries before the present one, which counts unless it is a peek. */
  appliedBefore(key: Key, isPeek: boolean): number {
    const applied = this.#states.get(key)?.applied ?? (isPeek ? 0 : 1);
    return isPeek ? applied : applied - 1;
  }

  /** A number from 0 to 1: the same sequence for the same seed. */
  draw(isPeek: boolean): number {
    const before = this.#random;
    const drawn = this.#draw();
    if (isPeek) this.#random = before;
    return drawn;
  }

  /** Gives back what it has of the budget. */
  close(): void {
    this.#budget.left += this.#states.size;
    this.#states.clear();
  }

  #count(applies: boolean): void {
    for (const tally of [this.rule.tally, this.#tally]) {
      if (tally === undefined) continue;
      tally.matched++;
      if (applies) tally.applied++;
    }
  }

  #state(key: Key, isPeek: boolean): State {
    const known = this.#states.get(key);
    if (known !== undefined) return known;
    const state = { matched: 0, applied: 0 };
    if (isPeek) return state;
    if (this.#budget.left === 0) {
      const [oldest] = this.#states.keys();
      if (oldest === undefined) return state;
      this.#states.delete(oldest);
    } else this.#budget.left--;
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
