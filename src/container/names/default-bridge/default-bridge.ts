/**
 * DefaultBridgeNames: the names of the containers on Docker's default bridge, which has none in Docker. They come after
 * those of Docker's networks: a container that is also on other networks resolves there what it did before.
 */
import { LOCAL_SOURCE } from "../../../base/model/local-source.ts";
import type { DefaultBridgeSetting } from "../../../base/model/default-bridge-setting.ts";
import type { VisibleNames } from "../../../base/model/visible-names.ts";
import { type ContainerFact, DEFAULT_BRIDGE } from "../../registry/fact.ts";
import { DockerNames } from "../docker/docker-names.ts";
import { NetworkNames } from "../docker/network-names.ts";
import { type NameTraits, visibleNetwork } from "../docker/networks.ts";
import type { NameSource } from "../name-source.ts";

const BRIDGE = { id: DEFAULT_BRIDGE, name: DEFAULT_BRIDGE };

export class DefaultBridgeNames implements NameSource {
  readonly #names = new NetworkNames(DEFAULT_BRIDGE);
  #setting: DefaultBridgeSetting = "off";

  /** Existing names do not change. */
  setSetting(setting: DefaultBridgeSetting): void {
    this.#setting = setting;
  }

  put({ id, onDefaultBridge: endpoint }: ContainerFact, traits: NameTraits = {}): void {
    if (endpoint === undefined) this.#names.remove(id);
    else this.#names.put(id, { ...endpoint, ...traits });
  }

  remove(id: string): void {
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
