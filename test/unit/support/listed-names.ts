// Lists names of the control socket, a line for each.

import type { ListedName } from "../../../src/api/names.ts";
import type { ContainerFact } from "../../../src/container/facts/fact.ts";
import { listNames } from "../../../src/control/reports/name-resolver.ts";
import type { ControlPorts } from "../../../src/control/situation/ports.ts";

function sourceRow({ name, network, state, source, shadowedBy, addresses, records, owners }: ListedName): string {
  const from = [source ?? "docker", ...(network === null ? [] : [`on ${network}`])].join(" ");
  const to = [...addresses, ...(records ?? []), ...owners.map(({ container }) => container)].join("+");
  return `${name}: ${state} ${shadowedBy ?? ""} from ${from} to ${to}`.replace("  ", " ");
}

/** The rows of some names as a container resolves them. */
export async function rowsOf(ports: ControlPorts, fact: ContainerFact, ...names: readonly string[]): Promise<string[]> {
  const { names: all } = await listNames(ports, fact, undefined);
  return all.filter(({ name }) => names.includes(name)).map((each) => sourceRow(each));
}
