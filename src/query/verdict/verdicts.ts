/**
 * Verdicts: the rules for one client, and what they say about a query: the newest rule that applies decides. A client without
 * rules has no Verdicts, so a query of it costs nothing here.
 */
import { presentation, sameBytes } from "../../base/dns/name.ts";
import type { QuestionName } from "../../base/model/visible-names.ts";
import type { Outcome } from "../record/outcome.ts";
import type { FixedReply, Rule, RuleAction } from "./rule.ts";
import type { RuleSet } from "./rule-set.ts";
import { RuleUse, StateBudget } from "./rule-use.ts";

interface JudgedQuestion extends QuestionName {
  readonly type: number;
}

/** How many queries of all containers got each verdict. */
export interface VerdictCounts {
  fault: number;
  answer: number;
  deny: number;
}

/** What a rule wants done with a query. */
export interface Verdict {
  readonly rule: Rule;
  readonly action: VerdictAction;
}

type VerdictAction = AnswerAction | Extract<RuleAction, { readonly kind: "delay" }>;

/** An answer at once, or none. */
export type AnswerAction =
  | Exclude<RuleAction, { readonly kind: "replies" | "only" | "delay" }>
  | { readonly kind: "reply"; readonly reply: FixedReply };

/** A hermetic container can reach itself. */
const LOCALHOST = Buffer.from("\u0009localhost", "latin1");

export class Verdicts {
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

  /** A query has its answer, or gets none. */
  tape(outcome: Outcome): void {
    for (const { tapes } of this.sets) for (const tape of tapes) tape.note(this.#containerId, outcome);
  }

  /** A rule is gone. */
  forget(rule: Rule): void {
    this.#uses.get(rule)?.close();
    this.#uses.delete(rule);
  }

  /** The verdict on a query; undefined if it is answered as always. `isPeek`: the query does not count. */
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
      return { rule, action: settled(use, key, isPeek) };
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
        return { rule, action: { kind: "rcode", rcode } };
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

function settled(use: RuleUse, key: number | string, isPeek: boolean): VerdictAction {
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
