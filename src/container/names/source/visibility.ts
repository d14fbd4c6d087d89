/**
 * Visibility: what one container may see of networks that it is not on, by the setting `visible`. It sees only addresses that
 * it has a route to: none of an internal network, and none of a family without a gateway.
 */
import { COMPOSE_LABEL } from "../../../base/model/compose.ts";
import type { VisibleSetting } from "../../../base/model/name-choices.ts";
import type { NameAddresses } from "../../../base/model/visible-names.ts";
import { type ContainerFact, type NetworkFact, isUserDefined } from "../../facts/fact.ts";
import { type Gateways, gatewaysOf } from "./gateways.ts";

const NONE = new Uint8Array(0);

export class Visibility {
  readonly #own: ReadonlySet<string>;
  readonly #gateways: Gateways;
  /** The Compose project whose networks are visible; undefined for all networks. */
  readonly #project: string | undefined;

  constructor(own: ReadonlySet<string>, gateways: Gateways, project: string | undefined) {
    this.#own = own;
    this.#gateways = gateways;
    this.#project = project;
  }

  sees({ id, name, isInternal, scope, project }: NetworkFact): boolean {
    if (this.#own.has(id) || isInternal || scope !== "local" || !isUserDefined(name)) return false;
    return this.#project === undefined || project === this.#project;
  }

  reachable(found: NameAddresses): NameAddresses {
    const { ipv4, ipv6 } = this.#gateways;
    if (ipv4 !== undefined && ipv6 !== undefined) return found;
    const { v4, v6, ttlSeconds, isSorted = false } = found;
    return { v4: ipv4 === undefined ? NONE : v4, v6: ipv6 === undefined ? NONE : v6, ttlSeconds, isSorted };
  }
}

/** Undefined if it sees its own networks only. */
export function visibilityOf(
  container: ContainerFact,
  setting: VisibleSetting,
  networkOf: (id: string) => NetworkFact | undefined,
): Visibility | undefined {
  if (setting === "network") return undefined;
  // Of the container's creator: an image could claim any project.
  const project = setting === "all" ? undefined : container.labels[COMPOSE_LABEL.project];
  if (setting === "project" && project === undefined) return undefined;
  const gateways = gatewaysOf(container, networkOf);
  if (gateways.ipv4 === undefined && gateways.ipv6 === undefined) return undefined;
  return new Visibility(new Set(container.endpoints.map(({ networkId }) => networkId)), gateways, project);
}
