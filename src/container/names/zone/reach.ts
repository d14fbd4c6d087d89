/**
 * Reach: which addresses of others one container is told: those on its own networks, in Docker's order, then those that
 * the setting `visible` adds. A container without any does not exist for it.
 */
import type { NetworkFact } from "../../registry/fact.ts";
import type { Outlook } from "../outlook.ts";
import type { MemberEndpoint, ZoneMember } from "./members.ts";

export interface Addresses {
  readonly v4: Uint8Array[];
  readonly v6: Uint8Array[];
}

interface ReachParts {
  /** The container's own networks, in search order. */
  readonly networks: readonly string[];
  readonly outlook: Outlook | undefined;
  readonly networkOf: (id: string) => NetworkFact | undefined;
}

const NONE = new Uint8Array(0);
const NOT_VISIBLE = -1;

export class Reach {
  readonly #ranks: ReadonlyMap<string, number>;
  readonly #parts: ReachParts;

  constructor(parts: ReachParts) {
    this.#parts = parts;
    this.#ranks = new Map(parts.networks.map((id, rank) => [id, rank]));
  }

  sees(member: ZoneMember): boolean {
    return member.endpoints.some((each) => this.#rank(each) !== NOT_VISIBLE);
  }

  /** Whether the container is told this very address. */
  tells(member: ZoneMember, isWanted: (address: Uint8Array) => boolean): boolean {
    const { v4, v6 } = this.all(member);
    return [...v4, ...v6].some((address) => isWanted(address));
  }

  /** One address of each family: on the first network that both are on. */
  first(member: ZoneMember): Addresses {
    const { v4, v6 } = this.all(member);
    return { v4: v4.slice(0, 1), v6: v6.slice(0, 1) };
  }

  all({ endpoints }: ZoneMember): Addresses {
    const found: Addresses = { v4: [], v6: [] };
    const visible = endpoints.filter((each) => this.#rank(each) !== NOT_VISIBLE);
    const ordered = visible.length < 2 ? visible : visible.toSorted((a, b) => this.#rank(a) - this.#rank(b));
    for (const { networkId, v4 = NONE, v6 = NONE } of ordered) {
      const outlook = this.#ranks.has(networkId) ? undefined : this.#parts.outlook;
      const told = outlook?.reachable({ v4, v6 }) ?? { v4, v6 };
      if (told.v4.length > 0) found.v4.push(told.v4);
      if (told.v6.length > 0) found.v6.push(told.v6);
    }
    return found;
  }

  #rank({ networkId }: MemberEndpoint): number {
    const own = this.#ranks.get(networkId);
    if (own !== undefined) return own;
    const { outlook, networkOf } = this.#parts;
    const network = outlook === undefined ? undefined : networkOf(networkId);
    return network !== undefined && outlook?.sees(network) === true ? this.#ranks.size : NOT_VISIBLE;
  }
}
