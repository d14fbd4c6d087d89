/**
 * RuleSet: our rules in one namespace, installed with one rule backend. The plan says which rules; the rule set
 * installs, replaces and removes them without a gap in which a query is lost. Every change waits for a lock of the namespace,
 * so it is made by others than the calling thread, and one after the other.
 */
import type { HeldNamespace } from "../../base/model/held-namespace.ts";
import type { TablePlan } from "./plan.ts";
import type { InstalledRules } from "./installed-rules.ts";

export interface RuleSet {
  /** The netlink port under which the kernel reports our own changes; undefined if it does not report them. */
  readonly netlinkPort: number | undefined;
  /** What another process needs to remove the rules; undefined if a netlink socket is not enough. */
  readonly removal: Pick<HeldNamespace, "netlink" | "tables" | "isOwned"> | undefined;
  /** Installs the plans in place of what is installed. */
  install(plans: readonly TablePlan[], existing: readonly InstalledRules[]): Promise<void>;
  /** Replaces the rules of the existing chains. */
  replaceRules(plans: readonly TablePlan[]): Promise<void>;
  /** Replaces whole tables. */
  replaceTables(plans: readonly TablePlan[]): Promise<void>;
  remove(): Promise<void>;
  close(): void;
}
