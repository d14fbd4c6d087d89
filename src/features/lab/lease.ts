import type { InjectedFault } from "../../api/failures.ts";
import type { LeaseReply, LeaseSummary, RuleReport, RuleUseReport } from "../../api/lease.ts";
import { typeName } from "../../base/dns/record-type.ts";
import { codeOf, isInternalError, reasonWithRemedy } from "../../base/lib/fault.ts";
import { gatherInSlices } from "../../base/lib/slices.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import { type Holder, holderText } from "../../control/server/http.ts";
import { Recording } from "./recording.ts";
import type { RuleBook, RuleScope } from "./rule-book.ts";
import { type ReadRule, badRule, fieldsOf, numberOf, readRule, readScope, refuseUnknownKeys } from "./rule-reader.ts";
import { type Rule, RuleTally } from "./rules.ts";

interface LeaseParts {
  readonly number: number;
  readonly holder: Holder;
  readonly book: RuleBook;
  readonly facts: () => ReadonlyMap<string, ContainerFact>;
  /** Resolves when the label with this key is known of every container. */
  readonly learnLabel: (key: string) => Promise<void>;
  /** Throws a Fault if there are too many rules already; `about` is what a rule is about. */
  readonly admitRule: (scope: RuleScope, about?: string) => void;
}

interface HeldRule {
  readonly read: ReadRule;
  readonly rule: Rule;
  readonly scope: RuleScope;
}

interface HeldRecording {
  readonly recording: Recording;
  readonly scope: RuleScope;
}

const KINDS = ["rule", "record", "remove", "report"];
const ID_MAX = Number.MAX_SAFE_INTEGER;

/** Of all leases: a later rule precedes an earlier one. */
let lastRule = 0;

/**
 * The rules of one connection to the control socket. Each line adds or removes one, and is answered when that is in force. A line that is
 * wrong gets an answer that says so, and the lease stays open. Its end takes back everything.
 */
export class Lease {
  readonly #parts: LeaseParts;
  readonly #since = new Date();
  readonly #rules = new Map<number, HeldRule>();
  readonly #recordings = new Map<number, HeldRecording>();
  /** How many rules are about the same. */
  readonly #abouts = new Map<string, number>();
  #lastId = 0;
  #line = 0;
  #isEnded = false;

  constructor(parts: LeaseParts) {
    this.#parts = parts;
  }

  get rules(): number {
    return this.#rules.size + this.#recordings.size;
  }

  rulesAbout(about: string): number {
    return this.#abouts.get(about) ?? 0;
  }

  get isRecording(): boolean {
    return this.#recordings.size > 0;
  }

  get holder(): Holder {
    return this.#parts.holder;
  }

  /** Does what a line says, and returns what to answer. */
  async handle(text: string): Promise<LeaseReply> {
    const line = ++this.#line;
    try {
      return { line, ...(await this.#do(parsed(text))) };
    } catch (error) {
      if (isInternalError(error)) throw error;
      return { line, error: reasonWithRemedy(error), code: codeOf(error) ?? "BAD_RULE" };
    }
  }

  /** The same for a line that cannot be read. */
  refuse(message: string): LeaseReply {
    return { line: ++this.#line, error: message, code: "BAD_RULE" };
  }

  /** What has been recorded since the last call, in pieces. */
  *recorded(): Generator<LeaseReply> {
    for (const { recording } of this.#recordings.values()) {
      for (let taken = recording.take(); taken !== undefined; taken = recording.take()) yield taken;
    }
  }

  async summary(): Promise<LeaseSummary> {
    const { number, holder } = this.#parts;
    return {
      lease: number,
      ...holder,
      since: this.#since.toISOString(),
      isRecording: this.isRecording,
      ...(await this.#report()),
    };
  }

  /** `isChosen` chooses containers: a rule that has done nothing yet may still be for them. */
  injected(isChosen: (containerId: string) => boolean): InjectedFault[] {
    // Thousands of rules may have one scope.
    const scopes = new Map<string, boolean>();
    const isScopeMeant = (scope: RuleScope): boolean => {
      const known = scopes.get(scope.key) ?? [...this.#parts.book.idsOf(scope)].some((id) => isChosen(id));
      scopes.set(scope.key, known);
      return known;
    };
    return [...this.#rules.values()].flatMap(({ read: { what }, rule: { tally }, scope }) => {
      const containers = [...tally.containers].filter(([id]) => isChosen(id));
      if (containers.length === 0 && !isScopeMeant(scope)) return [];
      const applied = containers.filter(([, each]) => each.applied > 0);
      return {
        text: what,
        by: holderText(this.holder),
        since: this.#since.toISOString(),
        applied: applied.reduce((sum, [, each]) => sum + each.applied, 0),
        containers: applied.map(([id]) => this.#nameOf(id)),
      };
    });
  }

  end(): void {
    for (const { rule, scope } of this.#rules.values()) this.#parts.book.remove(rule, scope);
    for (const { recording, scope } of this.#recordings.values()) this.#parts.book.remove(recording.tape, scope);
    this.#rules.clear();
    this.#abouts.clear();
    this.#recordings.clear();
    this.#isEnded = true;
  }

  async #do(value: unknown): Promise<DistributiveOmit<Exclude<LeaseReply, { readonly recorded: unknown }>, "line">> {
    // Lines may have come before the end of the connection that are read after it.
    if (this.#isEnded) throw badRule("The lease has ended");
    const fields = fieldsOf(value, "line", '{"rule": {"name": "db", "action": "servfail"}}');
    refuseUnknownKeys(fields, KINDS, "a line");
    const [kind, ...more] = Object.keys(fields);
    if (kind === undefined || more.length > 0) throw badRule(`A line has one of the fields ${KINDS.join(", ")}`);
    if (kind === "rule") return await this.#add(fields["rule"]);
    if (kind === "record") return await this.#record(fields["record"]);
    if (kind === "remove") return this.#remove(numberOf(fields, "remove", 1, ID_MAX) ?? 0);
    if (fields["report"] !== true) throw badRule("Invalid report: use true");
    return { report: await this.#report() };
  }

  async #add(value: unknown): Promise<{ readonly id: number; readonly containers: number }> {
    const { book, admitRule, number, holder } = this.#parts;
    const read = readRule(value);
    const scope = await this.#scopeOf((value as { readonly in?: unknown }).in);
    const { pattern, types, over, action, limits, what } = read;
    const about = aboutOf(read);
    admitRule(scope, about);
    const text = `${what} (lease ${number} of ${holderText(holder)})`;
    const rule: Rule = { id: ++lastRule, pattern, types, over, action, limits, text, tally: new RuleTally() };
    const containers = book.add(rule, scope);
    this.#rules.set(++this.#lastId, { read, rule, scope });
    this.#abouts.set(about, this.rulesAbout(about) + 1);
    return { id: this.#lastId, containers };
  }

  async #record(value: unknown): Promise<{ readonly id: number; readonly containers: number }> {
    const { book, facts, admitRule } = this.#parts;
    const fields = fieldsOf(value, "record", '{"in": {"project": "shop"}}');
    refuseUnknownKeys(fields, ["in"], "record");
    const scope = await this.#scopeOf(fields["in"]);
    if (this.#recordings.size > 0)
      throw badRule("The lease records already: remove that recording first, or open another lease");
    admitRule(scope);
    const recording = new Recording(facts);
    const containers = book.add(recording.tape, scope);
    this.#recordings.set(++this.#lastId, { recording, scope });
    return { id: this.#lastId, containers };
  }

  async #scopeOf(value: unknown): Promise<RuleScope> {
    const { facts, learnLabel } = this.#parts;
    const { scope, labelKey } = readScope(value, facts);
    if (labelKey !== undefined) await learnLabel(labelKey);
    if (this.#isEnded) throw badRule("The lease has ended");
    return scope;
  }

  #remove(id: number): { readonly removed: number } {
    const { book } = this.#parts;
    const held = this.#rules.get(id);
    const recording = this.#recordings.get(id);
    if (held !== undefined) this.#take(held);
    else if (recording !== undefined) book.remove(recording.recording.tape, recording.scope);
    else throw badRule(`The lease has no rule ${id}`);
    this.#rules.delete(id);
    this.#recordings.delete(id);
    return { removed: id };
  }

  #take({ read, rule, scope }: HeldRule): void {
    this.#parts.book.remove(rule, scope);
    const about = aboutOf(read);
    const left = this.rulesAbout(about) - 1;
    if (left === 0) this.#abouts.delete(about);
    else this.#abouts.set(about, left);
  }

  async #report(): Promise<RuleReport> {
    return { rules: await gatherInSlices(this.#uses()) };
  }

  *#uses(): Generator<RuleUseReport> {
    for (const [id, held] of this.#rules) yield this.#useOf(id, held);
  }

  #useOf(id: number, { read: { actionName, what }, rule }: HeldRule): RuleUseReport {
    const { tally, pattern, action } = rule;
    const containers = [...tally.containers].map(([containerId, { matched, applied }]) => ({
      container: this.#nameOf(containerId),
      matched,
      applied,
    }));
    const refused = [...tally.refused.values()].map(({ containerId, name, type, count }) => ({
      container: this.#nameOf(containerId),
      name,
      type: typeName(type),
      count,
    }));
    return {
      id,
      name: pattern.text,
      action: actionName,
      text: what,
      matched: tally.matched,
      applied: tally.applied,
      containers,
      ...(action.kind === "only" && { refused, refusedOthers: tally.refusedOthers }),
    };
  }

  #nameOf(containerId: string): string {
    return this.#parts.facts().get(containerId)?.name ?? containerId.slice(0, 12);
  }
}

/** Rules of the same words are all looked at for a query. */
function aboutOf({ actionName, pattern }: ReadRule): string {
  return actionName === "only" ? "with the action only" : `for "${pattern.text}"`;
}

type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never;

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw badRule(
      'A line is not JSON: send one map for each line, such as {"rule": {"name": "db", "action": "servfail"}}',
    );
  }
}
