import { type Pattern, PatternIndex } from "../../base/model/name-pattern.ts";
import type { QuestionName } from "../../base/model/visible-names.ts";
import type { AnswerAction, DelayAction, FixedReply } from "../../query/verdict.ts";
import { Tape } from "./recording.ts";

export type RuleAction =
  | Exclude<AnswerAction, { readonly kind: "reply" }>
  | (DelayAction & { readonly jitterMs: number })
  /** These replies, one after the other; the last one stays. */
  | { readonly kind: "replies"; readonly replies: readonly FixedReply[] }
  /** Everything but these names fails. */
  | { readonly kind: "only"; readonly names: PatternIndex<true>; readonly rcode: number };

/** How often a rule applies to the queries that match it; without any field, always. */
interface RuleLimits {
  /** Only to the first ones. */
  readonly count?: number | undefined;
  /** To the first of so many, and so on. */
  readonly every?: number | undefined;
  /** To each with this probability. */
  readonly probability?: number | undefined;
  readonly seed?: number | undefined;
  /** Names that match are counted each on its own. */
  readonly isPerName?: boolean | undefined;
}

/**
 * What a lease wants done with certain queries of certain containers. The lease says who is meant and for which names; the rule decides,
 * query by query, whether it applies. Its state is kept for each client, so that two containers that a rule is about never share its counts.
 */
export interface Rule {
  /** Unique in this process; a later rule precedes an earlier one. */
  readonly id: number;
  readonly pattern: Pattern;
  /** Undefined for all. */
  readonly types: ReadonlySet<number> | undefined;
  readonly over: "udp" | "tcp" | undefined;
  readonly action: RuleAction;
  readonly limits: RuleLimits;
  /** What it does and whose it is, for people. */
  readonly text: string;
  /** What it has done so far. */
  readonly tally: RuleTally;
}

/** Containers with counts of their own, of all rules together; and names that a hermetic rule lists. */
const CONTAINERS_MAX = 50_000;
const NAMES_MAX = 500;

let containersCounted = 0;

export interface ContainerTally {
  /** Queries that the rule is about, and those of them to which it applied. */
  matched: number;
  applied: number;
}

/** What a rule has done, and for which containers, also for those that are gone. */
export class RuleTally implements ContainerTally {
  matched = 0;
  applied = 0;
  readonly containers = new Map<string, ContainerTally>();
  /** Queries that a hermetic rule refused, by container, name and type. */
  readonly refused = new Map<
    string,
    { readonly containerId: string; readonly name: string; readonly type: number; count: number }
  >();
  /** Further ones. */
  refusedOthers = 0;

  /** Undefined for a container that is counted in the sum alone. */
  of(containerId: string): ContainerTally | undefined {
    const known = this.containers.get(containerId);
    if (known !== undefined || containersCounted >= CONTAINERS_MAX) return known;
    const tally = { matched: 0, applied: 0 };
    this.containers.set(containerId, tally);
    containersCounted++;
    return tally;
  }

  refuse(containerId: string, name: string, type: number): void {
    const key = `${containerId} ${type} ${name}`;
    const known = this.refused.get(key);
    if (known !== undefined) known.count++;
    else if (this.refused.size < NAMES_MAX) this.refused.set(key, { containerId, name, type, count: 1 });
    else this.refusedOthers++;
  }

  /** The rule is gone. */
  close(): void {
    containersCounted -= this.containers.size;
    this.containers.clear();
  }
}

/** The rules and tapes for one choice of containers. Its clients share it, so a thousand rules for a thousand containers are stored once. */
export class RuleSet {
  readonly #rules = new PatternIndex<Rule>();
  /** Rules that deny everything but some names. */
  readonly hermetic: Rule[] = [];
  /** They record what is answered. */
  readonly tapes = new Set<Tape>();

  get isEmpty(): boolean {
    return this.#rules.isEmpty && this.hermetic.length === 0 && this.tapes.size === 0;
  }

  add(entry: Rule | Tape): void {
    if (entry instanceof Tape) this.tapes.add(entry);
    else if (entry.action.kind === "only") this.hermetic.push(entry);
    else this.#rules.add(entry.pattern, entry);
  }

  remove(entry: Rule | Tape): void {
    if (entry instanceof Tape) {
      this.tapes.delete(entry);
      return;
    }
    if (entry.action.kind !== "only") return this.#rules.remove(entry.pattern, (each) => each === entry);
    const at = this.hermetic.indexOf(entry);
    if (at !== -1) this.hermetic.splice(at, 1);
  }

  /** The rules for a name. */
  find(name: QuestionName): readonly Rule[] {
    return this.#rules.find(name);
  }
}
