/**
 * EngineNetworks: all networks of the engine, also those without containers. The engine is asked at most once a second, however
 * many readers there are; and what the engine's networks say of its host.
 */
import { CoalescedCall } from "../../base/lib/coalesced-call.ts";
import type { Engine } from "../../container/watch/engine.ts";
import type { NetworkJson } from "../../container/watch/engine-json.ts";
import { networkFact } from "../../container/watch/translate.ts";
import type { EngineNetwork } from "../../control/ports.ts";

const LIST_EVERY_MS = 1_000;

export class EngineNetworks {
  readonly #engine: Pick<Engine, "networks">;
  readonly #call: CoalescedCall<readonly EngineNetwork[]>;

  constructor(engine: Pick<Engine, "networks">) {
    this.#engine = engine;
    this.#call = new CoalescedCall(async () => await this.#read(), LIST_EVERY_MS);
  }

  async list(): Promise<readonly EngineNetwork[]> {
    return await this.#call.get();
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

/** An engine that has just started may not report the gateway of the bridge: it is the first address. */
export function gatewayOf({ Gateway: gateway, Subnet: subnet }: { Gateway?: string; Subnet?: string }): string[] {
  const address = gateway ?? /^(\d+\.\d+\.\d+)\.0\//.exec(subnet ?? "")?.[1]?.concat(".1");
  // Some engines write it with the length of the prefix.
  return address === undefined ? [] : [address.replace(/\/\d+$/, "")];
}
