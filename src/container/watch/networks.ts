/**
 * Networks: the engine's facts about every network that containers are on, each inspected once.
 */
import type { ContainerFact, NetworkFact } from "../facts/fact.ts";
import type { Engine } from "./engine.ts";
import { networkFact } from "./translate.ts";

/** The key is the network ID. */
export async function readNetworks(
  facts: readonly ContainerFact[],
  engine: Pick<Engine, "network">,
): Promise<Map<string, NetworkFact>> {
  const ids = new Set(facts.flatMap(({ endpoints }) => endpoints.map(({ networkId }) => networkId)));
  const networks = new Map<string, NetworkFact>();
  for (const id of ids) {
    const json = await engine.network(id);
    if (json !== undefined) networks.set(id, networkFact(json));
  }
  return networks;
}
