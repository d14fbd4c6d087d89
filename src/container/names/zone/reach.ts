/**
 * Reach: which addresses of others one container is told: those on its own networks, in Docker's order, then those that
 * the setting `visible` adds. A container without any does not exist for it.
 */
import type { NetworkFact } from "../../registry/fact.ts";
import type { Outlook } from "../outlook.ts";
import type { Addresses, MemberEndpoint, ZoneMember } from "./members.ts";

interface ReachParts {
  /** The container's own networks, in search order. */
  readonly networks: readonly string[];
  readonly outlook: Outlook | undefined;
  readonly networkOf: (id: string) => NetworkFact | undefined;
}

const NONE = new Uint8Array(0);
const NOTHING: Addresses = { v4: [], v6: [] };
const NOT_VISIBLE = -1;

export class Reach {
  readonly #ranks: ReadonlyMap<string, number>;
  readonly #parts: ReachParts;

  constructor(parts: ReachParts) {
    this.#parts = parts;
    this.#ranks = new Map(parts.networks.map((id, rank) => [id, rank]));
  }

  sees(member: ZoneMember): boolean {
    return member.endpoints.some((each) => {
      const { v4, v6 } = this.#told(each);
      return v4.length + v6.length > 0;
    });
  }

  /** Whether the container is told this very address. */
  tells(member: ZoneMember, isWanted: (address: Uint8Array) => boolean): boolean {
    const { v4, v6 } = this.all(member);
    return [...v4, ...v6].some((address) => isWanted(address));
  }

  /** One address of each family: on the first network that both are on. */
  first(member: ZoneMember): Addresses {
    const { v4, v6 } = this.all(member);
    return v4.length < 2 && v6.length < 2 ? { v4, v6 } : { v4: v4.slice(0, 1), v6: v6.slice(0, 1) };
  }

  all({ endpoints }: ZoneMember): Addresses {
    const [only] = endpoints;
    // Nearly all have one network, and an answer can have hundreds of containers.
    if (only !== undefined && endpoints.length === 1) return this.#told(only);
    const visible = endpoints.filter((each) => this.#rank(each) !== NOT_VISIBLE);
    const told = visible.toSorted((a, b) => this.#rank(a) - this.#rank(b)).map((each) => this.#told(each));
    return { v4: told.flatMap(({ v4 }) => v4), v6: told.flatMap(({ v6 }) => v6) };
  }

  /** On its own networks all; on others those with a route. */
  #told(endpoint: MemberEndpoint): Addresses {
    if (this.#ranks.has(endpoint.networkId)) return endpoint;
    const { outlook } = this.#parts;
    if (outlook === undefined || this.#rank(endpoint) === NOT_VISIBLE) return NOTHING;
    const { v4, v6 } = outlook.reachable({ v4: endpoint.v4[0] ?? NONE, v6: endpoint.v6[0] ?? NONE });
    return { v4: v4.length === 0 ? [] : [v4], v6: v6.length === 0 ? [] : [v6] };
  }

  #rank({ networkId }: MemberEndpoint): number {
    const own = this.#ranks.get(networkId);
    if (own !== undefined) return own;
    const { outlook, networkOf } = this.#parts;
    const network = outlook === undefined ? undefined : networkOf(networkId);
    return network !== undefined && outlook?.sees(network) === true ? this.#ranks.size : NOT_VISIBLE;
  }
}
