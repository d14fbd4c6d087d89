/**
 * EngineNetworks: all networks of the engine, also those without containers. The engine is asked at most once a second, however
 * many readers there are. While it hangs, the list is the last one.
 */
import { CoalescedCall } from "../../base/lib/async.ts";
import type { Engine } from "../../container/watch/engine.ts";
import type { NetworkJson } from "../../container/watch/engine-json.ts";
import { networkFact, gatewayIn } from "../../container/watch/translate.ts";
import type { EngineNetwork } from "../../control/situation/ports.ts";
import type { HostGateway } from "../../container/names/host-name/host-name.ts";
import { DEFAULT_BRIDGE } from "../../container/facts/fact.ts";

const LIST_EVERY_MS = 1_000;

export class EngineNetworks {
  readonly #engine: Pick<Engine, "networks" | "silentMs">;
  readonly #call: CoalescedCall<readonly EngineNetwork[]>;
  #last: readonly EngineNetwork[] = [];

  constructor(engine: Pick<Engine, "networks" | "silentMs">) {
    this.#engine = engine;
    this.#call = new CoalescedCall(async () => await this.#read(), LIST_EVERY_MS);
  }

  async list(): Promise<readonly EngineNetwork[]> {
    const call = this.#call.get();
    const silent = this.#engine.silentMs().then((ms) => (ms === undefined ? call : undefined));
    this.#last = (await Promise.race([call, silent])) ?? this.#last;
    return this.#last;
  }

  async #read(): Promise<readonly EngineNetwork[]> {
    try {
      return (await this.#engine.networks()).map(networkOf);
    } catch {
      // Unknown while the engine is away.
      return [];
    }
  }
}

function networkOf(json: NetworkJson): EngineNetwork {
  const subnets = (json.IPAM?.Config ?? []).flatMap(({ Subnet: subnet, Gateway: gateway }) =>
    subnet === undefined ? [] : [{ subnet, gateway }],
  );
  return { ...networkFact(json), subnets };
}

/**
 * The default addresses of the engine's host for containers: the host's side of the default bridge.
 * Without addresses if the engine does not tell: nodes can also be reached in other ways, and the next connection asks again.
 */
export async function hostGateway(engine: Pick<Engine, "network">): Promise<HostGateway> {
  try {
    return gatewayIn(await engine.network(DEFAULT_BRIDGE));
  } catch {
    return { ipv4: undefined, ipv6: undefined };
  }
}
