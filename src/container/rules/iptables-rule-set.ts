/**
 * IptablesRuleSet: our rules as iptables-legacy chains. Each table changes atomically, one table after the other, in an
 * order in which a query that arrives between two changes is answered, too.
 */
import { Fault } from "../../base/lib/fault.ts";
import { RouteSocket } from "../../kernel/rtnetlink.ts";
import { removeTable } from "./permanent-rules.ts";
import { applyChains } from "./iptables-chains.ts";
import type { NetNamespace } from "../../kernel/net-namespace.ts";
import type { RuleSet } from "./rule-set.ts";
import type { IpFamily, TablePlan } from "./plan.ts";
import type { InstalledRules } from "./installed-rules.ts";

/** iptables-restore splits its input at blanks, so any other name could be read as several words. */
const PLAIN_NAME = /^[\w.@:-]+$/;

export class IptablesRuleSet implements RuleSet {
  readonly netlinkPort = undefined;
  readonly removal = undefined;
  readonly #hasZones: boolean;
  readonly #netns: NetNamespace;
  #families: readonly IpFamily[] = [];
  #interfaceNames: ReadonlyMap<number, string> = new Map();

  constructor(hasZones: boolean, netns: NetNamespace) {
    this.#hasZones = hasZones;
    this.#netns = netns;
  }

  async install(plans: readonly TablePlan[], existing: readonly InstalledRules[]): Promise<void> {
    this.#families = existing.filter(({ kind }) => kind === "chains").map(({ family }) => family);
    await this.replaceTables(plans);
    for (const { kind, family } of existing) if (kind === "table") await removeTable(this.#netns, family);
  }

  /** iptables-legacy identifies chains by name only, so every change is the same operation. */
  async replaceRules(plans: readonly TablePlan[]): Promise<void> {
    const planned = plans.map(({ family }) => family);
    // Tables change one after the other: if one fails, remove() must also revert those that were changed before it.
    this.#families = [...new Set([...planned, ...this.#families])];
    for (const family of this.#families)
      await this.#apply(
        family,
        plans.find((plan) => plan.family === family),
      );
    this.#families = planned;
  }

  async replaceTables(plans: readonly TablePlan[]): Promise<void> {
    const usesInterfaces = plans.some(({ chains }) =>
      chains.some(({ rules }) => rules.some(({ match }) => match.interface !== undefined)),
    );
    this.#interfaceNames = usesInterfaces ? interfaceNames(this.#netns) : new Map();
    await this.replaceRules(plans);
  }

  async remove(): Promise<void> {
    for (const family of this.#families) {
      try {
        await this.#apply(family, undefined);
      } catch {
        // The next attach or `dns11 cleanup` finds and removes what is left.
      }
    }
    this.#families = [];
  }

  close(): void {
    // There is nothing to close.
  }

  async #apply(family: IpFamily, plan: TablePlan | undefined): Promise<void> {
    const options = { hasZones: this.#hasZones, interfaceName: (index: number) => this.#interfaceName(index) };
    await applyChains(family, this.#netns.fd, plan, options);
  }

  #interfaceName(index: number): string {
    const name = this.#interfaceNames.get(index);
    if (name === undefined || !PLAIN_NAME.test(name)) {
      throw new Fault("IPTABLES", `Cannot pass interface ${index} to iptables: unsupported name "${name ?? ""}"`, {
        remedy: "Rename the interface in the container's namespace: use letters, digits, dots, dashes and underscores.",
      });
    }
    return name;
  }
}

function interfaceNames({ within, memory }: NetNamespace): Map<number, string> {
  const route = within(() => new RouteSocket(memory));
  try {
    return new Map(route.links().map(({ index, name }) => [index, name]));
  } finally {
    route.close();
  }
}
