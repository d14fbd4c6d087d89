/**
 * RuleSet: our rules in one namespace, installed with one rule backend. The plan says which rules; the rule set
 * installs, replaces and removes them without a gap in which a query is lost.
 */
import type { HeldNamespace } from "../../base/model/held-namespace.ts";
import type { TablePlan } from "./plan.ts";
import type { InstalledRules } from "./installed-rules.ts";

export interface RuleSet {
  /** The netlink port under which the kernel reports our own changes; undefined if it does not report them. */
  readonly netlinkPort: number | undefined;
  /** What another process needs to remove the rules; undefined if a netlink socket is not enough. */
  readonly removal: Pick<HeldNamespace, "netlink" | "tables"> | undefined;
  /** Installs the plans in place of what is installed. Call inside the namespace. */
  install(plans: readonly TablePlan[], existing: readonly InstalledRules[]): void;
  /** Replaces the rules of the existing chains. Call in any namespace. */
  replaceRules(plans: readonly TablePlan[]): void;
  /** Replaces whole tables. Call inside the namespace. */
  replaceTables(plans: readonly TablePlan[]): void;
  /** Removes the rules. Call in any namespace. */
  remove(): void;
  close(): void;
}
