/**
 * IptablesChains: applies a plan to our iptables-legacy chains of one family. It reads the existing chains first,
 * because one line that does not fit them makes iptables-restore refuse the whole table.
 */
import { type Xtables, chainsIn } from "../../kernel/xtables.ts";
import { Fault } from "../../base/lib/fault.ts";
import { type TextOptions, restoreText } from "./iptables-text.ts";
import { iptablesTool } from "./iptables-tool.ts";
import { isOurChain } from "./our-chains.ts";
import type { IpFamily, TablePlan } from "./plan.ts";

/** Returns the chains that could only be emptied, because foreign rules jump to them. */
export async function applyChains(
  family: IpFamily,
  namespace: number,
  plan: TablePlan | undefined,
  options: TextOptions,
): Promise<readonly string[]> {
  const tool = await iptablesTool();
  const { text, emptied } = restoreText(plan, await tool.save(family, namespace), options);
  if (text !== "") await tool.restore(family, namespace, text);
  return emptied;
}

/** Removes our chains of one family. */
export async function removeChains(family: IpFamily, namespace: number): Promise<void> {
  const emptied = await applyChains(family, namespace, undefined, { hasZones: false, interfaceName: String });
  if (emptied.length === 0) return;
  throw new Fault(
    "CHAIN_IN_USE",
    `Cannot delete ${emptied.join(", ")}: other rules jump there; the chains are empty now`,
    {
      remedy: "Delete those rules (iptables-legacy-save lists them) and run the cleanup again.",
    },
  );
}

/** Whether our chains exist, as far as the tables can be read. */
export async function hasOurChains(family: IpFamily, tables: Xtables | undefined): Promise<boolean> {
  for (const [name, table] of tables ?? []) {
    if (table !== undefined && (await chainsIn(family, table)).some((chain) => isOurChain(name, chain))) return true;
  }
  return false;
}
