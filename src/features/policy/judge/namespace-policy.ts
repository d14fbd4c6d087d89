/**
 * NamespacePolicy: the policies of one network namespace, and what they say about a query and its answer. Usually there is one; of
 * several, a name must be allowed by each. This is the only code that decides: `dns11 policy check` asks it, too.
 *
 * A query passes these questions, each where its answer becomes known: the asked name (`name`), who answers it (`local`), or whether
 * it may leave the machine (`forward`) and does (`leave`), and what the answer contains (`target`, `address`).
 */
import { presentation } from "../../../base/dns/name.ts";
import { CLASS } from "../../../base/dns/record.ts";
import { TYPE } from "../../../base/dns/record-type.ts";
import type { LocalSource } from "../../../base/model/local-source.ts";
import { type Pattern, PatternIndex } from "../../../base/model/name-pattern.ts";
import type { QuestionName } from "../../../base/model/visible-names.ts";
import { addressBytes, unmappedBytesOf } from "../../../base/model/address.ts";
import { type Policy, decidingAmong } from "../model/policy.ts";
import type { PolicyRule } from "../model/policy-rule.ts";
import { type CompiledPolicy, type IsHosts, WILDCARD_BYTES_MAX, isExact } from "./compiled-policy.ts";
import { type Refusal, type Ports, commonPorts, Questions } from "./refusal.ts";

const V4 = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.in-addr\.arpa$/;
const V6 = /^(?:[0-9a-f]\.){32}ip6\.arpa$/;

const MINUTE_MS = 60_000;

/** Of all wildcards. Then the one that was queried least recently is new again. */
const NAMES_MAX = 2_000;

interface Minute {
  sinceMs: number;
  count: number;
}

/** Then the one that was given least recently is forgotten. */
const ADDRESSES_MAX = 4_000;

export interface JudgedQuestion extends QuestionName {
  readonly type: number;
  readonly class: number;
}

/** An operator allows a name for a while, whatever the policies say. */
export interface Grant {
  readonly pattern: Pattern;
  /** On the clock of `performance.now`. */
  readonly untilMs: number;
  /** For people. */
  readonly text: string;
}

/** What it tells about what it decides. */
export interface PolicyObserver {
  /** A query was refused, or would have been. `name` is in presentation format. */
  onRefusal(containerId: string, refusal: Refusal, name: string, type: number): void;
  readonly now: () => number;
  /** Whether an address is one of the machine itself. Where nobody knows the machine, none is. */
  readonly isHosts?: IsHosts;
}

const NO_GRANTS: readonly Grant[] = [];

export class NamespacePolicy {
  /** The container whose namespace it is. */
  readonly containerId: string;
  readonly #policies: readonly CompiledPolicy[];
  readonly #observer: PolicyObserver;
  readonly #newNames: Map<CompiledPolicy, NewNames>;
  readonly #questions: Map<CompiledPolicy, Questions>;
  readonly #answered: AnsweredAddresses;
  readonly #grants = new PatternIndex<Grant>();
  grants: readonly Grant[] = NO_GRANTS;
  /** Set while the kernel cannot hold the container to its policy, which it should: nothing resolves then. */
  hindrance: Refusal | undefined;
  /** A policy of it is enforced. */
  readonly isEnforcing: boolean;
  /** How long it keeps an address. */
  readonly keepMs: number;

  /**
   * `policies`: at least one. `before`: what the namespace had until now. Its programs still use what it answered, and what they have
   * asked counts for the policies that are in force, also those that it has not at the moment: while it is not described, for example.
   */
  constructor(
    containerId: string,
    policies: readonly CompiledPolicy[],
    observer: PolicyObserver,
    before?: NamespacePolicy,
    inForce: readonly CompiledPolicy[] = [],
  ) {
    this.containerId = containerId;
    this.#policies = policies.toSorted((a, b) => rankOf(b.policy) - rankOf(a.policy));
    this.#observer = observer;
    this.#answered = before === undefined ? new AnsweredAddresses() : before.#answered;
    const kept = [...policies, ...inForce];
    this.#newNames = before === undefined ? new Map() : staying(before.#newNames, kept);
    this.#questions = before === undefined ? new Map() : staying(before.#questions, kept);
    this.isEnforcing = policies.some(({ policy }) => policy.mode === "enforce");
    this.keepMs = keepMsOf(policies.map(({ policy }) => policy));
  }

  readonly #isHosts: IsHosts = (address) => this.#observer.isHosts?.(address) === true;

  get policies(): readonly Policy[] {
    return this.#policies.map(({ policy }) => policy);
  }

  setGrants(grants: readonly Grant[]): void {
    for (const grant of this.grants) this.#grants.remove(grant.pattern, (each) => each === grant);
    for (const grant of grants) this.#grants.add(grant.pattern, grant);
    this.grants = grants;
  }

  /** What the operator allows for now. */
  grantFor(name: QuestionName): Grant | undefined {
    if (this.grants.length === 0) return undefined;
    const nowMs = this.#observer.now();
    return this.#grants.find(name).find(({ untilMs }) => nowMs < untilMs);
  }

  /** Whether the name is refused, wherever it would be answered. */
  name(name: QuestionName): Refusal | undefined {
    if (this.hindrance !== undefined) return this.hindrance;
    return this.grantFor(name) === undefined ? this.#first((each) => each.denied(name)) : undefined;
  }

  /** Whether it is refused, now that a source of this machine has it. */
  local(name: QuestionName, source: LocalSource): Refusal | undefined {
    return this.grantFor(name) === undefined ? this.#first((each) => each.local(name, source)) : undefined;
  }

  /** Whether it is refused, now that it would be forwarded, or answered with what was. `isPeek`: nobody queries it. */
  forward(question: JudgedQuestion, isPeek: boolean): Refusal | undefined {
    if (this.grantFor(question) !== undefined) return undefined;
    return this.#first((each) => this.#forwardBy(each, question, isPeek));
  }

  /** Whether one more question for the name may leave the machine now. `isPeek`: it does not, so it does not count. */
  leave(name: QuestionName, isPeek: boolean): Refusal | undefined {
    return this.#first((each) => {
      const questions = this.#questions.get(each) ?? new Questions(each.policy, this.#observer.now);
      this.#questions.set(each, questions);
      const rules = each.rulesFor(name);
      const rule = rules.find(isExact) ?? rules[0];
      return questions.admit(rule, isPeek) ? undefined : each.refusal("questions", rule);
    });
  }

  /** On the clock by which it decides. */
  get nowMs(): number {
    return this.#observer.now();
  }

  /** With which ports connections to what these names were answered with are allowed, by the policies that enforce addresses. */
  portsOf(names: readonly QuestionName[]): Ports {
    const all = this.#policies.filter(({ policy }) => policy.addresses === "enforce");
    return commonPorts(decidingAmong(all, ({ policy }) => policy).map((each) => each.portsOf(names)));
  }

  /** For how long an operator allows one of these names, with all ports; undefined without that. */
  grantedMs(names: readonly QuestionName[]): number | undefined {
    const ends = names.flatMap((name) => this.grantFor(name)?.untilMs ?? []);
    return ends.length === 0 ? undefined : Math.max(...ends) - this.#observer.now();
  }

  /** The first rule that allows the name, by the policy that decides first. */
  ruleFor(question: JudgedQuestion): PolicyRule | undefined {
    return this.#policies[0]?.rulesFor(question)[0];
  }

  /** Whether a CNAME in an answer may lead there: what is allowed leads where it likes, but for what is denied. */
  target(name: QuestionName): Refusal | undefined {
    return this.#first((each) => each.denied(name));
  }

  /** Whether an answer may have the address; `isLocal`: of a name of this machine. */
  address(address: Uint8Array, isLocal: boolean): Refusal | undefined {
    return this.#first((each) => (isLocal ? each.deniedAddress(address) : each.address(address, this.#isHosts)));
  }

  /** Whether no rule allows an address. */
  unlistedAddress(address: Uint8Array): Refusal | undefined {
    return this.#first(
      (each) => each.deniedAddress(address) ?? (each.blockFor(address) === undefined ? each.unlisted() : undefined),
    );
  }

  /** The container has been given an address. */
  answered(address: Uint8Array): void {
    this.#answered.add(address, this.#observer.now() + this.keepMs);
  }

  note(refusal: Refusal, { folded, foldedLength }: QuestionName, type: number): void {
    this.#observer.onRefusal(this.containerId, refusal, presentation(folded, 0, foldedLength), type);
  }

  #forwardBy(compiled: CompiledPolicy, question: JudgedQuestion, isPeek: boolean): Refusal | undefined {
    const denied = compiled.denied(question);
    if (denied !== undefined) return denied;
    if (question.class !== CLASS.IN) return compiled.unlisted();
    const rules = compiled.rulesFor(question);
    if (rules.some(isExact)) return undefined;
    if (question.type === TYPE.PTR && rules.length === 0) return this.#reverse(compiled, question);
    let first: Refusal | undefined;
    for (const rule of rules) {
      const refusal = this.#byWildcard(compiled, rule, question, isPeek);
      if (refusal === undefined) return undefined;
      first ??= refusal;
    }
    return first ?? compiled.unlisted();
  }

  #byWildcard(
    compiled: CompiledPolicy,
    rule: PolicyRule,
    { type, folded, foldedLength }: JudgedQuestion,
    isPeek: boolean,
  ): Refusal | undefined {
    const { types, newNamesPerMinute } = compiled.policy;
    if (!types.has(type)) return compiled.refusal("type", rule);
    if (foldedLength - (rule.pattern?.tail.length ?? 0) > WILDCARD_BYTES_MAX) return compiled.refusal("length", rule);
    const names = this.#newNames.get(compiled) ?? new NewNames(newNamesPerMinute);
    this.#newNames.set(compiled, names);
    const name = Buffer.from(folded.buffer, folded.byteOffset, foldedLength).toString("latin1");
    return names.admit(rule, name, this.#observer.now(), isPeek) ? undefined : compiled.refusal("new-names", rule);
  }

  /** The name of an address that a rule allows, or that the container was given. */
  #reverse(compiled: CompiledPolicy, question: JudgedQuestion): Refusal | undefined {
    const address = reverseAddress(question);
    if (address === undefined) return compiled.unlisted();
    const denied = compiled.deniedAddress(address);
    if (denied !== undefined) return denied;
    const isKnown = compiled.blockFor(address) !== undefined || this.#answered.has(address, this.#observer.now());
    return isKnown ? undefined : compiled.unlisted();
  }

  /** The refusal of an enforced policy, or else that of one that only records. */
  #first(judge: (compiled: CompiledPolicy) => Refusal | undefined): Refusal | undefined {
    for (const compiled of this.#policies) {
      const refusal = judge(compiled);
      if (refusal !== undefined) return refusal;
    }
    return undefined;
  }
}

function staying<T>(
  before: ReadonlyMap<CompiledPolicy, T>,
  policies: readonly CompiledPolicy[],
): Map<CompiledPolicy, T> {
  return new Map([...before].filter(([each]) => policies.includes(each)));
}

/** The longest of the settings; one that a client has made may shorten it, and not lengthen it. */
function keepMsOf(policies: readonly Policy[]): number {
  const longest = (of: readonly Policy[]): number => Math.max(...of.map(({ keepMs }) => keepMs));
  const [declared, leased] = [false, true].map((wanted) =>
    policies.filter(({ isLeased }) => (isLeased === true) === wanted),
  ) as [Policy[], Policy[]];
  if (declared.length === 0 || leased.length === 0) return longest(policies);
  return Math.min(longest(declared), longest(leased));
}

/** The stricter one decides first. */
function rankOf({ mode }: Policy): number {
  return mode === "enforce" ? 1 : 0;
}

/**
 * The addresses that a container was given lately, for as long as its policy keeps them: whoever has an address
 * may ask for its name.
 */
class AnsweredAddresses {
  /** When each is forgotten. */
  readonly #untilMs = new Map<string, number>();

  add(address: Uint8Array, untilMs: number): void {
    const key = keyOf(address);
    this.#untilMs.delete(key);
    this.#untilMs.set(key, untilMs);
    if (this.#untilMs.size <= ADDRESSES_MAX) return;
    const [oldest = ""] = this.#untilMs.keys();
    this.#untilMs.delete(oldest);
  }

  has(address: Uint8Array, nowMs: number): boolean {
    const untilMs = this.#untilMs.get(keyOf(address));
    return untilMs !== undefined && nowMs < untilMs;
  }
}

function keyOf(address: Uint8Array): string {
  return Buffer.from(address).toString("latin1");
}

/**
 * How many names that were not queried before each wildcard of a policy has allowed a container in this minute. Whoever
 * sends data in names needs a new one for each piece.
 */
class NewNames {
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

/**
 * The address that a name below in-addr.arpa or ip6.arpa is the reverse name of.
 *
 * Undefined for any other name; of a mapped IPv4 address, that address.
 */
function reverseAddress({ folded, foldedLength }: QuestionName): Uint8Array | undefined {
  const name = presentation(folded, 0, foldedLength);
  const [, ...parts] = V4.exec(name) ?? [];
  if (parts.length > 0) return addressBytes(parts.toReversed().join("."));
  if (!V6.test(name)) return undefined;
  const digits = name.split(".").slice(0, 32).toReversed().join("");
  return unmappedBytesOf(digits.match(/..../g)?.join(":") ?? "");
}
