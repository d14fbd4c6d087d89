/**
 * LateContainers: running containers whose facts do not come: the engine takes long to describe them, which the author of an image
 * can make happen, or fails to. Until then only their networks say that they are there, and under which addresses.
 */
import { LIMITS } from "../../base/limits.ts";
import type { Engine } from "./engine.ts";
import type { ListedJson } from "./engine-json.ts";

/** A network that a container is on, and its addresses there. */
export interface LateEndpoint {
  readonly networkId: string;
  readonly networkName: string;
  readonly ipv4: string | undefined;
  readonly ipv6: string | undefined;
}

export interface LateHooks {
  /** Nothing else is known of a container. */
  readonly onLate: (id: string, endpoints: readonly LateEndpoint[]) => void;
  /** The container is known now, or has ended. */
  readonly onKnown: (id: string) => void;
}

interface Awaited {
  readonly networks: Set<string>;
  listed: readonly LateEndpoint[];
  timer: NodeJS.Timeout | undefined;
  isLate: boolean;
  /** How often it was connected to a network: an inspect that began before the last time does not say all. */
  connections: number;
}

export class LateContainers {
  readonly #engine: Pick<Engine, "network">;
  readonly #hooks: LateHooks;
  readonly #awaited = new Map<string, Awaited>();

  constructor(engine: Pick<Engine, "network">, hooks: LateHooks) {
    this.#engine = engine;
    this.#hooks = hooks;
  }

  /** A container was connected to a network: it has an address that is not known. */
  connected(id: string, networkId: string): void {
    const awaited = this.#of(id);
    awaited.networks.add(networkId);
    awaited.connections++;
    awaited.timer ??= this.#timer(id);
  }

  /** A list has a container that is not known. What ran before dns11 waits for its turn, however many there are. */
  listed({ Id: id, NetworkSettings: settings }: ListedJson): void {
    this.#of(id).listed = Object.entries(settings?.Networks ?? {}).flatMap(([networkName, each]) =>
      endpointOf(each.NetworkID ?? "", networkName, each.IPAddress, each.GlobalIPv6Address),
    );
  }

  /** An inspect begins; `known` gets the result. */
  began(id: string): number {
    const awaited = this.#awaited.get(id);
    if (awaited === undefined) return 0;
    if (!awaited.isLate) awaited.timer ??= this.#timer(id);
    return awaited.connections;
  }

  failed(id: string): void {
    if (this.#awaited.has(id)) void this.#late(id);
  }

  /** An inspect has ended: the container is known, or gone. */
  known(id: string, connections: number): void {
    const awaited = this.#awaited.get(id);
    if (awaited?.connections !== connections) return;
    clearTimeout(awaited.timer);
    this.#awaited.delete(id);
    if (awaited.isLate) this.#hooks.onKnown(id);
  }

  #of(id: string): Awaited {
    const known = this.#awaited.get(id);
    if (known !== undefined) return known;
    const awaited = { networks: new Set<string>(), listed: [], timer: undefined, isLate: false, connections: 0 };
    this.#awaited.set(id, awaited);
    return awaited;
  }

  #timer(id: string): NodeJS.Timeout {
    return setTimeout(() => void this.#late(id), LIMITS.factsLateMs).unref();
  }

  /** A network may not list the container yet, and the engine may not answer: it is asked again. */
  async #late(id: string): Promise<void> {
    const awaited = this.#awaited.get(id);
    if (awaited === undefined) return;
    clearTimeout(awaited.timer);
    awaited.timer = this.#timer(id);
    const { connections } = awaited;
    const found = [...awaited.listed];
    for (const network of awaited.networks) {
      const json = await this.#engine.network(network).catch(() => undefined);
      const { IPv4Address: ipv4, IPv6Address: ipv6 } = json?.Containers?.[id] ?? {};
      found.push(...endpointOf(network, json?.Name ?? "", ipv4?.split("/")[0], ipv6?.split("/")[0]));
    }
    if (found.length === 0 || this.#awaited.get(id) !== awaited) return;
    if (awaited.connections === connections) {
      clearTimeout(awaited.timer);
      awaited.timer = undefined;
    }
    awaited.isLate = true;
    this.#hooks.onLate(id, found);
  }
}

/** None without an address. */
function endpointOf(networkId: string, networkName: string, ipv4 = "", ipv6 = ""): LateEndpoint[] {
  if (ipv4 === "" && ipv6 === "") return [];
  return [{ networkId, networkName, ipv4: ipv4 || undefined, ipv6: ipv6 || undefined }];
}
