/**
 * BuildNames: what the steps of `docker build` resolve: the names of one network, which the settings choose. Steps are on the default bridge,
 * and Docker lets nothing pass from there to another network. So a container that is on the default bridge as well has its address
 * there, and only others have the one on that network.
 */
import { LOCAL_SOURCE } from "../../../base/model/local-source.ts";
import type { VisibleNames } from "../../../base/model/visible-names.ts";
import { BUILDS_ID, type ContainerFact, DEFAULT_BRIDGE } from "../../facts/fact.ts";
import { DockerNames } from "../docker/docker-names.ts";
import { NetworkNames } from "../docker/network-names.ts";
import { visibleNetwork } from "../docker/networks.ts";
import type { NameSource, NamedContainer } from "../source/name-source.ts";
import type { NameSettings } from "../source/name-settings.ts";

export class BuildNames implements NameSource {
  readonly #network: string | undefined;
  readonly #names: NetworkNames;

  constructor({ builds }: Pick<NameSettings, "builds">) {
    this.#network = builds;
    this.#names = new NetworkNames(builds ?? "");
  }

  join({ fact, traits, project }: NamedContainer): void {
    const { id, endpoints, onDefaultBridge: reachable } = fact;
    const network = this.#network;
    const endpoint =
      network === DEFAULT_BRIDGE ? reachable : endpoints.find(({ networkName }) => networkName === network);
    if (endpoint === undefined) return this.#names.remove(id);
    const { ipv4, ipv6 } = reachable ?? endpoint;
    this.#names.put(id, { ...endpoint, ...traits, project, ipv4, ipv6 });
  }

  leave({ id }: ContainerFact): void {
    this.#names.remove(id);
  }

  namesFor({ id }: ContainerFact): VisibleNames | undefined {
    const name = this.#network;
    if (id !== BUILDS_ID || name === undefined) return undefined;
    return new DockerNames([visibleNetwork({ id: name, name }, this.#names)], undefined, LOCAL_SOURCE.network);
  }
}
