/**
 * IptablesRuleSet: our rules as iptables-legacy chains. Each table changes atomically, one table after the other, in an
 * order in which a query that arrives between two changes is answered, too.
 */
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { RouteSocket } from "../../kernel/rtnetlink.ts";
import { removeTable } from "./permanent-rules.ts";
import { applyChains } from "./iptables-chains.ts";
import type { NamespaceFd } from "./iptables-tool.ts";
import type { RuleSet } from "./rule-set.ts";
import type { IpFamily, TablePlan } from "./plan.ts";
import type { InstalledRules } from "./installed-rules.ts";

/** iptables-restore splits its input at blanks, so any other name could be read as several words. */
const PLAIN_NAME = /^[\w.@:-]+$/;

export class IptablesRuleSet implements RuleSet {
  readonly netlinkPort = undefined;
  readonly removal = undefined;
  readonly #hasZones: boolean;
  readonly #memory: NetlinkMemory;
  readonly #namespace: NamespaceFd;
  #families: readonly IpFamily[] = [];
  #interfaceNames: ReadonlyMap<number, string> = new Map();

  constructor(hasZones: boolean, memory: NetlinkMemory, namespace: NamespaceFd) {
    this.#hasZones = hasZones;
    this.#memory = memory;
    this.#namespace = namespace;
  }

  install(plans: readonly TablePlan[], existing: readonly InstalledRules[]): void {
    this.#families = existing.filter(({ kind }) => kind === "chains").map(({ family }) => family);
    this.replaceTables(plans);
    for (const { kind, family } of existing) if (kind === "table") removeTable(this.#memory, family);
  }

  /** iptables-legacy identifies chains by name only, so every change is the same operation. */
  replaceRules(plans: readonly TablePlan[]): void {
    const planned = plans.map(({ family }) => family);
    // Tables change one after the other: if one fails, remove() must also revert those that were changed before it.
    this.#families = [...new Set([...planned, ...this.#families])];
    for (const family of this.#families)
      this.#apply(
        family,
        plans.find((plan) => plan.family === family),
      );
    this.#families = planned;
  }

  replaceTables(plans: readonly TablePlan[]): void {
    const usesInterfaces = plans.some(({ chains }) =>
      chains.some(({ rules }) => rules.some(({ match }) => match.interface !== undefined)),
    );
    this.#interfaceNames = usesInterfaces ? interfaceNames(this.#memory) : new Map();
    this.replaceRules(plans);
  }

  remove(): void {
    for (const family of this.#families) {
      try {
        this.#apply(family, undefined);
      } catch {
        // The next attach or `dns11 cleanup` finds and removes what is left.
      }
    }
    this.#families = [];
  }

  close(): void {
    // There is nothing to close.
  }

  #apply(family: IpFamily, plan: TablePlan | undefined): void {
    const options = { hasZones: this.#hasZones, interfaceName: (index: number) => this.#interfaceName(index) };
    applyChains(family, this.#namespace, plan, options);
  }

  #interfaceName(index: number): string {
    const name = this.#interfaceNames.get(index);
    if (name === undefined || !PLAIN_NAME.test(name)) {
      throw new Error(`Cannot pass interface ${index} to iptables: unsupported name "${name ?? ""}"`);
    }
    return name;
  }
}

function interfaceNames(memory: NetlinkMemory): Map<number, string> {
  const route = new RouteSocket(memory);
  try {
    return new Map(route.links().map(({ index, name }) => [index, name]));
  } finally {
    route.close();
  }
}
