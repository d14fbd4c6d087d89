import { presentation, sameBytes } from "../../base/dns/name.ts";
import type { QuestionName } from "../../base/model/visible-names.ts";
import type { Outcome } from "../../query/record/outcome.ts";
import type { FixedReply, JudgedQuestion, QueryJudge, Verdict } from "../../query/verdict.ts";
import type { ContainerTally, Rule, RuleSet } from "./rules.ts";

/** States of all rules of a client. Beyond that, the oldest of a rule makes room, or what is new is not remembered. */
const STATES_MAX = 1_000;
const SEED = 0x2545f491;

/** The queries of one type, or of one type and name. */
interface State {
  matched: number;
  applied: number;
}

type Key = number | string;

/** How many queries of all containers got each verdict. */
export interface VerdictCounts {
  fault: number;
  answer: number;
  deny: number;
}

/** A hermetic container can reach itself. */
const LOCALHOST = Buffer.from("\u0009localhost", "latin1");

/** The rules for one client, and what they say about a query: the newest rule that applies decides. */
export class Verdicts implements QueryJudge {
  readonly #containerId: string;
  readonly #counts: VerdictCounts;
  readonly sets = new Set<RuleSet>();
  /** Of the rules that have matched a query. */
  readonly #uses = new Map<Rule, RuleUse>();
  readonly #budget = new StateBudget();
  /** Whether a rule is about the last query that was judged, even one that did not apply: the next query may be judged otherwise. */
  isCovered = false;

  constructor(containerId: string, counts: VerdictCounts) {
    this.#containerId = containerId;
    this.#counts = counts;
  }

  note(outcome: Outcome): void {
    for (const { tapes } of this.sets) for (const tape of tapes) tape.note(this.#containerId, outcome);
  }

  /** A rule is gone. */
  forget(rule: Rule): void {
    this.#uses.get(rule)?.close();
    this.#uses.delete(rule);
  }

  judge(question: JudgedQuestion, isStream: boolean, isPeek: boolean): Verdict | undefined {
    const { type } = question;
    this.isCovered = false;
    for (const rule of this.#rulesFor(question)) {
      const { types, over, action } = rule;
      if (types?.has(type) === false) continue;
      this.isCovered = true;
      if ((over !== undefined && (over === "tcp") !== isStream) || (action.kind === "truncate" && isStream)) continue;
      const use = this.#useOf(rule);
      const key = use.keyOf(type, question);
      if (!use.apply(key, isPeek)) continue;
      if (!isPeek) this.#counts[action.kind === "replies" ? "answer" : "fault"]++;
      return { text: rule.text, action: settled(use, key, isPeek) };
    }
    return isLocalhost(question) ? undefined : this.#deny(question, isPeek);
  }

  /** Newest first. */
  #rulesFor(question: JudgedQuestion): readonly Rule[] {
    let found: readonly Rule[] = [];
    for (const set of this.sets) {
      if (set.tapes.size > 0) this.isCovered = true;
      const more = set.find(question);
      if (more.length > 0) found = found.length === 0 ? more : [...found, ...more];
    }
    return found.length > 1 ? found.toSorted((a, b) => b.id - a.id) : found;
  }

  #deny(question: JudgedQuestion, isPeek: boolean): Verdict | undefined {
    for (const { hermetic } of this.sets) {
      for (const rule of hermetic) {
        if (rule.action.kind !== "only" || rule.action.names.find(question).length > 0) continue;
        this.isCovered = true;
        const { rcode } = rule.action;
        if (!isPeek) {
          this.#counts.deny++;
          this.#useOf(rule).count();
          rule.tally.refuse(this.#containerId, nameOf(question), question.type);
        }
        return { text: rule.text, action: { kind: "rcode", rcode } };
      }
    }
    return undefined;
  }

  #useOf(rule: Rule): RuleUse {
    const known = this.#uses.get(rule);
    if (known !== undefined) return known;
    const use = new RuleUse(rule, this.#containerId, this.#budget);
    this.#uses.set(rule, use);
    return use;
  }
}

function settled(use: RuleUse, key: number | string, isPeek: boolean): Verdict["action"] {
  const { action } = use.rule;
  switch (action.kind) {
    case "replies": {
      const index = Math.min(use.appliedBefore(key, isPeek), action.replies.length - 1);
      return { kind: "reply", reply: action.replies[index] as FixedReply };
    }
    case "delay": {
      const { ms, jitterMs } = action;
      return jitterMs === 0 ? action : { ...action, ms: Math.max(0, ms + (use.draw(isPeek) * 2 - 1) * jitterMs) };
    }
    case "only":
      return { kind: "rcode", rcode: action.rcode };
    default:
      return action;
  }
}

function isLocalhost({ folded, foldedLength }: JudgedQuestion): boolean {
  const start = foldedLength - LOCALHOST.length;
  return start >= 0 && sameBytes(LOCALHOST, 0, folded, start, LOCALHOST.length);
}

function nameOf({ folded, foldedLength }: JudgedQuestion): string {
  return presentation(folded, 0, foldedLength);
}

/** How many states the rules of one client may still have. */
class StateBudget {
  left = STATES_MAX;
}

/**
 * A rule for one client: how many of its queries have matched, whether the rule applies to the next one, and which
 * reply of a sequence is next. A query for A and one for AAAA are counted apart, because one lookup sends both.
 */
class RuleUse {
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
