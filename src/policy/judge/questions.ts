/**
 * Questions: how many questions of a container leave the machine in a minute, by the rule that allows them; of reverse names, and of
 * what an operator allows for a while, together. Whoever runs the servers of an allowed name learns of each what was chosen, and when:
 * a name among those that are known, a type, their order. A limit for each rule bounds what each of them learns, and leaves programs
 * with many names as much for each.
 */
import { RateLimit } from "../../base/lib/rate-limit.ts";
import { LIMITS } from "../../base/limits.ts";
import type { Policy } from "../model/policy.ts";
import { type PolicyRule, isWildcard } from "../model/policy-rule.ts";

/** A new name is asked for IPv4 and IPv6. */
const QUESTIONS_PER_NAME = 2;
const MINUTE_SECONDS = 60;
/** A program that starts asks for most of its names. */
const BURST_MINUTES = 2;

export function questionsPerMinute({ newNamesPerMinute }: Policy, rule: PolicyRule | undefined): number {
  if (rule === undefined || !isWildcard(rule)) return LIMITS.policyQuestionsPerMinute;
  return LIMITS.policyWildcardQuestionsPerMinute + QUESTIONS_PER_NAME * newNamesPerMinute;
}

export class Questions {
  readonly #policy: Policy;
  readonly #now: () => number;
  readonly #limits = new Map<PolicyRule | undefined, RateLimit>();

  constructor(policy: Policy, now: () => number) {
    this.#policy = policy;
    this.#now = now;
  }

  /** Whether one more may leave. `isPeek`: it does not, so it does not count. */
  admit(rule: PolicyRule | undefined, isPeek: boolean): boolean {
    const limit = this.#limits.get(rule) ?? this.#limitOf(rule);
    return isPeek ? limit.has() : limit.take();
  }

  #limitOf(rule: PolicyRule | undefined): RateLimit {
    const perMinute = questionsPerMinute(this.#policy, rule);
    const rate = { burst: BURST_MINUTES * perMinute, perSecond: perMinute / MINUTE_SECONDS };
    const limit = new RateLimit(rate, this.#now);
    this.#limits.set(rule, limit);
    return limit;
  }
}
