/**
 * IptablesChains: our chains of one family as they should be, whatever of ours stands there. Looked at first, because one
 * line that does not fit what stands would have a whole table refused.
 */
import { chainsIn, xtablesIn } from "../../kernel/xtables.ts";
import { Fault } from "../../base/lib/fault.ts";
import { type TextOptions, isOurChain, restoreText } from "./iptables-text.ts";
import { type NamespaceFd, iptablesTool } from "./iptables-tool.ts";
import type { IpFamily, TablePlan } from "./plan.ts";

/** Returns the chains that nobody needs and that stay, emptied, because somebody else's rules lead to them. */
export function applyChains(
  family: IpFamily,
  place: NamespaceFd,
  plan: TablePlan | undefined,
  options: TextOptions,
): readonly string[] {
  const tool = iptablesTool();
  const { text, left } = restoreText(plan, tool.save(family, place), options);
  if (text !== "") tool.restore(family, place, text);
  return left;
}

/** Takes away our chains of one family. */
export function removeChains(family: IpFamily, place: NamespaceFd): void {
  const left = applyChains(family, place, undefined, { hasZones: false, deviceName: String });
  if (left.length === 0) return;
  throw new Fault("CHAIN_IN_USE", `${left.join(", ")}: emptied, and left, because somebody else's rules lead there`, {
    remedy: "Take those rules away (iptables-legacy-save shows them), and clean up again.",
  });
}

/** Whether chains of ours stand in the namespace that the thread is in. */
export function hasOurChains(family: IpFamily): boolean {
  return xtablesIn(family).some((table) => chainsIn(family, table)?.some((chain) => isOurChain(table, chain)) === true);
}
