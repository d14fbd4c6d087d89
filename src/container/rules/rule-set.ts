/**
 * RuleKeeper: holds our rules in one namespace, by the means of a tier. What should stand is the plan's to say; how it gets
 * there without a query meeting a gap, and how it goes away again, is the keeper's.
 */
import type { HeldNamespace } from "../../base/model/held-namespace.ts";
import type { TablePlan } from "./plan.ts";
import type { InstalledRules } from "./installed-rules.ts";

export interface RuleSet {
  /** The kernel tells of our own changes under this number, where it tells of them. */
  readonly netlinkPort: number | undefined;
  /** By what another process could remove what it made; undefined where that takes more than a socket. */
  readonly removal: Pick<HeldNamespace, "netlink" | "tables"> | undefined;
  /** Makes what is planned, instead of what stands already; to be called inside the namespace. */
  install(plans: readonly TablePlan[], standing: readonly InstalledRules[]): void;
  /** Other rules in the chains that stand; from wherever the thread is. */
  replaceRules(plans: readonly TablePlan[]): void;
  /** Other chains, too; to be called inside the namespace. */
  replaceTables(plans: readonly TablePlan[]): void;
  /** Takes away what it made; from wherever the thread is. */
  remove(): void;
  close(): void;
}
