// A client container, a network with a given number of names, and the other name servers inside the client.

import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import type { Engine } from "../support/engine/engine.ts";
import type { Host } from "./questions.ts";
import { Rivals } from "./rivals.ts";

const CONTAINERS = 10;

export type TestbedOptions = {
  readonly network: string;
  readonly names: number;
  // Path of the floor program.
  readonly floor?: string | undefined;
};

export class Testbed implements AsyncDisposable {
  readonly client: Container;
  readonly hosts: readonly Host[];
  readonly rivals: Rivals;

  private constructor(client: Container, hosts: readonly Host[], rivals: Rivals) {
    this.client = client;
    this.hosts = hosts;
    this.rivals = rivals;
  }

  static async make(engine: Engine, { network, names, floor }: TestbedOptions): Promise<Testbed> {
    const hosts = await startHosts(engine, { network, names });
    const client = await runContainer(engine, { name: `client-${network}`, networks: [network] });
    return new Testbed(client, hosts, await Rivals.start(client, hosts, floor));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.rivals[Symbol.asyncDispose]();
  }
}

// On a network of their own. The containers share the names; all but the first name of each are aliases.
export async function startHosts(
  engine: Engine,
  { network, names }: Pick<TestbedOptions, "network" | "names">,
): Promise<Host[]> {
  await createNetwork(engine, network);
  const hosts: Host[] = [];
  for (let index = 0; index < CONTAINERS; index++) {
    const aliases = Array.from(
      { length: names / CONTAINERS },
      (_, alias) => `${network}-${alias * CONTAINERS + index}`,
    );
    const [name = "", ...others] = aliases;
    const container = await runContainer(engine, { name, networks: [{ name: network, aliases: others }] });
    hosts.push(...aliases.map((alias) => ({ name: alias, address: container.address(network) })));
  }
  return hosts;
}
