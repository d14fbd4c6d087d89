import { Fault } from "../../base/lib/fault.ts";
import { PolicyTable } from "./table/policy-table.ts";
import type { CleanedMachine } from "../contract.ts";

/** What holds containers to policies outlives a killed instance, on purpose. */
export async function removeHeld(
  { runner, memory, host, nameOf }: CleanedMachine,
  isToGo: boolean,
): Promise<readonly string[]> {
  const within = <T>(work: () => T): T => runner.within(host().network, work);
  const names = PolicyTable.containersLeft({ memory, within }).map((short) => nameOf(short) ?? short.slice(0, 12));
  if (names.length > 0 && !isToGo) {
    throw new Fault("POLICIES_HOLD", `Policies hold containers, and would not any more: ${names.join(", ")}`, {
      remedy: "With --policies they are removed, too: then these containers reach every address.",
    });
  }
  if (!isToGo || !(await PolicyTable.removeLeft({ memory, within }))) return [];
  return names.length === 0
    ? ["removed the tables of policies"]
    : names.map((name) => `${name}: removed its policy, it reaches every address now`);
}
