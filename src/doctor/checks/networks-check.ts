/**
 * Networks check: networks that keep their containers apart. Names there lead to addresses that nobody can connect to, which looks
 * like a fault of DNS.
 */
import { type Finding, finding } from "../../base/model/finding.ts";
import { type ContainerFact, type NetworkFact, isUserDefined } from "../../container/facts/fact.ts";

const NETWORKS_MAX = 16;
const MEMBERS_MAX = 256;
const SHOWN = 4;
const REMEDY =
  "Connect those that are to talk to each other to another network, too, or create the network again without that option.";

type NetworkOf = (id: string) => NetworkFact | undefined;

/** Finds nothing on a network whose containers all share another one. */
export function networkFindings(facts: readonly ContainerFact[], networkOf: NetworkOf): Finding[] {
  const members = new Map<NetworkFact, ContainerFact[]>();
  for (const fact of facts) {
    for (const { networkId } of fact.endpoints) {
      const network = networkOf(networkId);
      if (network?.apartBy === undefined || !isUserDefined(network.name)) continue;
      members.set(network, [...(members.get(network) ?? []), fact]);
    }
  }
  return [...members].slice(0, NETWORKS_MAX).flatMap(([network, all]) => {
    const alone = separated(all.slice(0, MEMBERS_MAX), networkOf);
    if (alone.length === 0) return [];
    const names = alone.slice(0, SHOWN).map(({ name }) => name);
    const count = all.length > MEMBERS_MAX ? "" : `${alone.length - SHOWN} `;
    const more = alone.length > SHOWN ? ` and ${count}more` : "";
    const what = `containers on "${network.name}" resolve each other and cannot connect (${network.apartBy ?? ""}): ${names.join(", ")}${more}`;
    return [finding("networks", "warning", what, REMEDY)];
  });
}

/** Those of which another one is on no other network that they share. */
function separated(all: readonly ContainerFact[], networkOf: NetworkOf): ContainerFact[] {
  const open = all.map(
    ({ endpoints }) =>
      new Set(endpoints.flatMap(({ networkId: id }) => (networkOf(id)?.apartBy === undefined ? [id] : []))),
  );
  const [first] = open;
  // Hundreds on one network are compared with all others only where no network has them all.
  if (first !== undefined && [...first].some((id) => open.every((each) => each.has(id)))) return [];
  return all.filter((_, a) => open.some((other, b) => a !== b && ![...(open[a] ?? [])].some((id) => other.has(id))));
}
