/**
 * IptablesKeeper: our rules as chains of the older iptables. Each table changes in one step, one table after the other,
 * in an order in which a query that comes between two of them is answered, too.
 */
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { RouteSocket } from "../../kernel/rtnetlink.ts";
import { removeTable } from "./permanent-rules.ts";
import { applyChains } from "./iptables-chains.ts";
import type { NamespaceFd } from "./iptables-tool.ts";
import type { RuleSet } from "./rule-set.ts";
import type { IpFamily, TablePlan } from "./plan.ts";
import type { InstalledRules } from "./installed-rules.ts";

/** The text is a list of words: a name with anything else in it could be read as several. */
const PLAIN_NAME = /^[\w.@:-]+$/;

export class IptablesRuleSet implements RuleSet {
  readonly netlinkPort = undefined;
  readonly removal = undefined;
  readonly #hasZones: boolean;
  readonly #memory: NetlinkMemory;
  readonly #place: NamespaceFd;
  #families: readonly IpFamily[] = [];
  #deviceNames: ReadonlyMap<number, string> = new Map();

  constructor(hasZones: boolean, memory: NetlinkMemory, place: NamespaceFd) {
    this.#hasZones = hasZones;
    this.#memory = memory;
    this.#place = place;
  }

  install(plans: readonly TablePlan[], standing: readonly InstalledRules[]): void {
    this.#families = standing.filter(({ kind }) => kind === "chains").map(({ family }) => family);
    this.replaceTables(plans);
    for (const { kind, family } of standing) if (kind === "table") removeTable(this.#memory, family);
  }

  /** These tables know nothing of what stands in them but by name, so every change is the same one. */
  replaceRules(plans: readonly TablePlan[]): void {
    const planned = plans.map(({ family }) => family);
    // Tables change one after the other: what was made before one of them failed is to be taken back, too.
    this.#families = [...new Set([...planned, ...this.#families])];
    for (const family of this.#families)
      this.#put(
        family,
        plans.find((plan) => plan.family === family),
      );
    this.#families = planned;
  }

  replaceTables(plans: readonly TablePlan[]): void {
    const isByDevice = plans.some(({ chains }) =>
      chains.some(({ rules }) => rules.some(({ match }) => match.interface !== undefined)),
    );
    this.#deviceNames = isByDevice ? deviceNames(this.#memory) : new Map();
    this.replaceRules(plans);
  }

  remove(): void {
    for (const family of this.#families) {
      try {
        this.#put(family, undefined);
      } catch {
        // What is left is found by whoever comes next, and by `dns11 cleanup`.
      }
    }
    this.#families = [];
  }

  close(): void {
    // Nothing is held.
  }

  #put(family: IpFamily, plan: TablePlan | undefined): void {
    const options = { hasZones: this.#hasZones, deviceName: (index: number) => this.#deviceName(index) };
    applyChains(family, this.#place, plan, options);
  }

  #deviceName(index: number): string {
    const name = this.#deviceNames.get(index);
    if (name === undefined || !PLAIN_NAME.test(name)) {
      throw new Error(`Interface ${index}, "${name ?? ""}", cannot be named to iptables`);
    }
    return name;
  }
}

function deviceNames(memory: NetlinkMemory): Map<number, string> {
  const route = new RouteSocket(memory);
  try {
    return new Map(route.links().map(({ index, name }) => [index, name]));
  } finally {
    route.close();
  }
}
