/**
 * DefaultBridgeNames: the names of the containers on Docker's default bridge, which has none in Docker. They come after
 * those of Docker's networks: a container that is also on other networks resolves there what it did before.
 */
import { LOCAL_SOURCE } from "../../../base/model/local-source.ts";
import type { DefaultBridgeSetting } from "../../../base/model/name-choices.ts";
import type { VisibleNames } from "../../../base/model/visible-names.ts";
import { type ContainerFact, DEFAULT_BRIDGE } from "../../facts/fact.ts";
import { DockerNames } from "../docker/docker-names.ts";
import { NetworkNames } from "../docker/network-names.ts";
import { visibleNetwork } from "../docker/networks.ts";
import type { NameSource, NamedContainer } from "../source/name-source.ts";
import type { NameSettings } from "../source/name-settings.ts";

const BRIDGE = { id: DEFAULT_BRIDGE, name: DEFAULT_BRIDGE };

export class DefaultBridgeNames implements NameSource {
  readonly #names = new NetworkNames(DEFAULT_BRIDGE);
  readonly #setting: DefaultBridgeSetting;

  constructor({ defaultBridge }: Pick<NameSettings, "defaultBridge">) {
    this.#setting = defaultBridge;
  }

  join({ fact: { id, onDefaultBridge: endpoint }, traits, project }: NamedContainer): void {
    if (endpoint === undefined) this.#names.remove(id);
    else this.#names.put(id, { ...endpoint, ...traits, project });
  }

  leave({ id }: ContainerFact): void {
    this.#names.remove(id);
  }

  namesFor({ onDefaultBridge: endpoint }: ContainerFact): VisibleNames | undefined {
    if (this.#setting === "off" || endpoint === undefined) return undefined;
    return new DockerNames(
      [visibleNetwork(BRIDGE, this.#names, endpoint.links)],
      undefined,
      LOCAL_SOURCE.defaultBridge,
    );
  }
}
