/**
 * Verdicts: the rules for one client, and what they say about a query: the newest rule that applies decides. A client without
 * rules has no Verdicts, so a query of it costs nothing here.
 */
import { presentation, sameBytes } from "../../base/dns/name.ts";
import type { QuestionName } from "../../base/model/visible-names.ts";
import type { Outcome } from "../record/outcome.ts";
import type { FixedReply, Rule, RuleAction } from "./rule.ts";
import { PatternIndex } from "./pattern-index.ts";
import { RuleUse } from "./rule-use.ts";
import type { Tape } from "./tape.ts";

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
  readonly #uses = new PatternIndex<RuleUse>();
  /** Rules that deny everything but some names. */
  readonly #hermetic: RuleUse[] = [];
  /** They record what is answered. */
  readonly tapes = new Set<Tape>();
  /** Whether a rule is about the last query that was judged, even one that did not apply: the next query may be judged otherwise. */
  isCovered = false;

  constructor(containerId: string, counts: VerdictCounts) {
    this.#containerId = containerId;
    this.#counts = counts;
  }

  get isEmpty(): boolean {
    return this.#uses.isEmpty && this.#hermetic.length === 0 && this.tapes.size === 0;
  }

  add(rule: Rule): void {
    const use = new RuleUse(rule, this.#containerId);
    if (rule.action.kind === "only") this.#hermetic.push(use);
    else this.#uses.add(rule.pattern, use);
  }

  /** A query has its answer, or gets none. */
  tape(outcome: Outcome): void {
    for (const tape of this.tapes) tape.note(this.#containerId, outcome);
  }

  remove(rule: Rule): void {
    const isMeant = (use: RuleUse): boolean => use.rule === rule;
    if (rule.action.kind !== "only") return this.#uses.remove(rule.pattern, isMeant);
    const at = this.#hermetic.findIndex((use) => isMeant(use));
    if (at !== -1) this.#hermetic.splice(at, 1);
  }

  /** The verdict on a query; undefined if it is answered as always. `isPeek`: the query does not count. */
  judge(question: JudgedQuestion, isStream: boolean, isPeek: boolean): Verdict | undefined {
    const { type } = question;
    this.isCovered = this.tapes.size > 0;
    const found = this.#uses.find(question);
    for (const use of found.length > 1 ? found.toSorted((a, b) => b.rule.id - a.rule.id) : found) {
      const { types, over, action, limits } = use.rule;
      if (types?.has(type) === false) continue;
      this.isCovered = true;
      if ((over !== undefined && (over === "tcp") !== isStream) || (action.kind === "truncate" && isStream)) continue;
      const key = limits.isPerName === true ? nameOf(question) : "";
      if (!use.apply(type, key, isPeek)) continue;
      if (!isPeek) this.#counts[action.kind === "replies" ? "answer" : "fault"]++;
      return { rule: use.rule, action: settled(use, type, key, isPeek) };
    }
    return this.#hermetic.length === 0 || isLocalhost(question) ? undefined : this.#deny(question, isPeek);
  }

  #deny(question: JudgedQuestion, isPeek: boolean): Verdict | undefined {
    for (const use of this.#hermetic) {
      const { rule } = use;
      if (rule.action.kind !== "only" || rule.action.names.find(question).length > 0) continue;
      this.isCovered = true;
      use.apply(question.type, "", isPeek);
      if (!isPeek) {
        this.#counts.deny++;
        rule.tally.refuse(this.#containerId, nameOf(question), question.type);
      }
      return { rule, action: { kind: "rcode", rcode: rule.action.rcode } };
    }
    return undefined;
  }
}

function settled(use: RuleUse, type: number, key: string, isPeek: boolean): VerdictAction {
  const { action } = use.rule;
  switch (action.kind) {
    case "replies": {
      const index = Math.min(use.appliedBefore(type, key, isPeek), action.replies.length - 1);
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
