import type { InjectedFault } from "../../api/failures.ts";
import type { LeaseSummary, LeasesReport } from "../../api/lease.ts";
import { Fault } from "../../base/lib/fault.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import { type Holder, holderText } from "../../control/server/http.ts";
import { Lease } from "./lease.ts";
import { LAB_LIMITS } from "./limits.ts";
import type { RuleBook, RuleScope } from "./rule-book.ts";

const REMOVE = "Remove one of them.";

interface LeasesParts {
  readonly book: RuleBook;
  readonly facts: () => ReadonlyMap<string, ContainerFact>;
  readonly learnLabel: (key: string) => Promise<void>;
}

/**
 * All leases that are open, within their bounds: so many leases and rules in all, and a share of them for each process, so that a test that
 * forgets its leases takes them from nobody else.
 */
export class Leases {
  readonly #parts: LeasesParts;
  readonly #open = new Set<Lease>();
  #lastNumber = 0;

  constructor(parts: LeasesParts) {
    this.#parts = parts;
  }

  async report(): Promise<LeasesReport> {
    const leases: LeaseSummary[] = [];
    for (const lease of [...this.#open]) leases.push(await lease.summary());
    return { leases };
  }

  get count(): number {
    return this.#open.size;
  }

  /** Rules in force. */
  get rules(): number {
    return rulesOf([...this.#open]);
  }

  /** What the rules have done, for those who look for failures; `isChosen` chooses containers. */
  injected(isChosen: (containerId: string) => boolean): InjectedFault[] {
    return [...this.#open].flatMap((lease) => lease.injected(isChosen));
  }

  open(holder: Holder): Lease {
    const own = this.#of(holder);
    if (this.#open.size >= LAB_LIMITS.leases || own.length >= LAB_LIMITS.leasesEach) {
      const whose = own.length >= LAB_LIMITS.leasesEach ? ` by ${holderText(holder)}` : "";
      const count = whose === "" ? this.#open.size : own.length;
      throw new Fault("TOO_MANY_LEASES", `${count} leases are open${whose}`, { remedy: "End one of them." });
    }
    const lease = new Lease({
      ...this.#parts,
      number: ++this.#lastNumber,
      holder,
      admitRule: (scope, about) => this.#admitRule(holder, scope, about),
    });
    this.#open.add(lease);
    return lease;
  }

  end(lease: Lease): void {
    this.#open.delete(lease);
    lease.end();
  }

  #admitRule(holder: Holder, scope: RuleScope, about: string | undefined): void {
    const leases = this.#of(holder);
    const [same, sameInAll] =
      about === undefined ? [0, 0] : [rulesAbout(about, leases), rulesAbout(about, [...this.#open])];
    if (same >= LAB_LIMITS.nameRulesEach)
      throw new Fault("TOO_MANY_RULES", `${holderText(holder)} has ${same} rules ${about}`, { remedy: REMOVE });
    if (sameInAll >= LAB_LIMITS.nameRules)
      throw new Fault("TOO_MANY_RULES", `There are ${sameInAll} rules ${about}`, { remedy: REMOVE });
    const own = rulesOf(leases);
    if (own >= LAB_LIMITS.rulesEach)
      throw new Fault("TOO_MANY_RULES", `${holderText(holder)} has ${own} rules`, { remedy: REMOVE });
    if (this.rules >= LAB_LIMITS.rules)
      throw new Fault("TOO_MANY_RULES", `There are ${LAB_LIMITS.rules} rules`, { remedy: REMOVE });
    if (this.#parts.book.scopes >= LAB_LIMITS.scopes && !this.#parts.book.hasScope(scope))
      throw new Fault("TOO_MANY_RULES", `There are rules for ${LAB_LIMITS.scopes} choices of containers`, {
        remedy: "Use a choice that another rule has.",
      });
  }

  #of({ pid }: Holder): Lease[] {
    return [...this.#open].filter(({ holder }) => holder.pid === pid);
  }
}

function rulesAbout(about: string, leases: readonly Lease[]): number {
  return leases.reduce((sum, lease) => sum + lease.rulesAbout(about), 0);
}

function rulesOf(leases: readonly Lease[]): number {
  return leases.reduce((sum, { rules }) => sum + rules, 0);
}
