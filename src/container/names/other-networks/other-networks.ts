/**
 * OtherNetworks: NAME.NETWORK of networks that a container is not on, where settings allow it. Only addresses that have
 * a route from the container are told: none of an internal network, none to a container without a gateway of that
 * family. It is the last source, so that what a container resolves otherwise stays as it is.
 */
import { sameBytes } from "../../../base/dns/name.ts";
import { COMPOSE_LABEL } from "../../../base/model/compose-labels.ts";
import type { VisibleSetting } from "../../../base/model/visible-setting.ts";
import {
  type QuestionName,
  MISS,
  type NameAddresses,
  type NameSearch,
  type ReverseName,
  type VisibleNames,
} from "../../../base/model/visible-names.ts";
import { type ContainerFact, isUserDefined } from "../../registry/fact.ts";
import type { DockerNetworks, KnownNetwork } from "../docker/networks.ts";
import { type Gateways, gatewaysOf } from "../gateways.ts";
import type { NameSource } from "../name-source.ts";

const NONE = new Uint8Array(0);

/** What one container sees. */
interface Outlook {
  readonly own: ReadonlySet<string>;
  readonly gateways: Gateways;
  /** The Compose project whose networks are visible; undefined for all networks. */
  readonly project: string | undefined;
}

class NamesElsewhere implements VisibleNames {
  readonly places: readonly string[] = [];
  readonly #networks: DockerNetworks;
  readonly #outlook: Outlook;

  constructor(networks: DockerNetworks, outlook: Outlook) {
    this.#networks = networks;
    this.#outlook = outlook;
  }

  find(name: QuestionName, search: NameSearch): number {
    for (let labels = name.labelCount - 1; labels > 0; labels--) {
      const length = name.lengthOf[labels] as number;
      for (const network of this.#networks.withSuffixOf(name.foldedLength - length)) {
        const { suffixFolded: suffix, name: title } = network.visible;
        if (suffix === undefined || !sameBytes(name.folded, length, suffix, 0, suffix.length)) continue;
        if (!this.#sees(network)) continue;
        const found = network.names.lookup(name.folded, length, name.hashOf[labels] as number);
        if (found === undefined) continue;
        search.trace?.record(
          "names",
          `a name on "${title}", a network that this container is not on (setting visible)`,
        );
        return search.found(this.#reachable(found), true);
      }
    }
    return MISS;
  }

  pointer(labels: Uint8Array, length: number, hash: number): ReverseName | undefined {
    for (const network of this.#networks.all()) {
      const pointer = this.#sees(network) ? network.names.pointer(labels, length, hash) : undefined;
      if (pointer !== undefined) return pointer;
    }
    return undefined;
  }

  #sees({ fact }: KnownNetwork): boolean {
    const { own, project } = this.#outlook;
    if (own.has(fact.id) || fact.isInternal || fact.scope !== "local" || !isUserDefined(fact.name)) return false;
    return project === undefined || fact.project === project;
  }

  #reachable(found: NameAddresses): NameAddresses {
    const { ipv4, ipv6 } = this.#outlook.gateways;
    if (ipv4 !== undefined && ipv6 !== undefined) return found;
    return { v4: ipv4 === undefined ? NONE : found.v4, v6: ipv6 === undefined ? NONE : found.v6 };
  }
}

export class OtherNetworks implements NameSource {
  readonly #networks: DockerNetworks;
  #setting: VisibleSetting = "network";

  constructor(networks: DockerNetworks) {
    this.#networks = networks;
  }

  /** Existing names do not change. */
  setSetting(setting: VisibleSetting): void {
    this.#setting = setting;
  }

  namesFor(container: ContainerFact): VisibleNames | undefined {
    if (this.#setting === "network") return undefined;
    // Of the container's creator: an image could claim any project.
    const project = this.#setting === "all" ? undefined : container.labels[COMPOSE_LABEL.project];
    if (this.#setting === "project" && project === undefined) return undefined;
    const gateways = gatewaysOf(container, (id) => this.#networks.fact(id));
    if (gateways.ipv4 === undefined && gateways.ipv6 === undefined) return undefined;
    const own = new Set(container.endpoints.map(({ networkId }) => networkId));
    return new NamesElsewhere(this.#networks, { own, gateways, project });
  }
}
