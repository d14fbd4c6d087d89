/** Engine with two containers on one network, the minimum for a DNS query: `client` queries the name `web`. */
import { type Container, createNetwork, runContainer } from "./container.ts";
import { type Engine, startEngine } from "./engine.ts";

export interface Pair {
  readonly engine: Engine;
  readonly web: Container;
  readonly client: Container;
}

export async function startPair(): Promise<Pair> {
  const engine = await startEngine({ suite: "bookworm" });
  await createNetwork(engine, "n1");
  const web = await runContainer(engine, { name: "web", networks: ["n1"] });
  const client = await runContainer(engine, { name: "client", networks: ["n1"] });
  return { engine, web, client };
}
