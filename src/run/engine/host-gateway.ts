/**
 * HostGateway: the default addresses of the engine's host for containers: the host's side of the default bridge.
 */
import type { HostGateway } from "../../container/names/host-name/host-name.ts";
import { DEFAULT_BRIDGE } from "../../container/facts/fact.ts";
import type { Engine } from "../../container/watch/engine.ts";
import { gatewayIn } from "../../container/watch/translate.ts";

/** Without addresses if the engine does not tell: nodes can also be reached in other ways, and the next connection asks again. */
export async function hostGateway(engine: Pick<Engine, "network">): Promise<HostGateway> {
  try {
    return gatewayIn(await engine.network(DEFAULT_BRIDGE));
  } catch {
    return { ipv4: undefined, ipv6: undefined };
  }
}
