/**
 * IptablesChains: our chains of one family as they should be, whatever of ours stands there. Looked at first, because one
 * line that does not fit what stands would have a whole table refused.
 */
import { type TextOptions, restoreText } from "./iptables-text.ts";
import { type Place, iptablesTool } from "./iptables-tool.ts";
import type { Family, TablePlan } from "./plan.ts";

export function putChains(family: Family, place: Place, plan: TablePlan | undefined, options: TextOptions): void {
  const tool = iptablesTool();
  const text = restoreText(plan, tool.save(family, place), options);
  if (text !== "") tool.restore(family, place, text);
}

/** Takes away our chains of one family. */
export function removeChains(family: Family, place: Place): void {
  putChains(family, place, undefined, { hasZones: false, deviceName: String });
}
