/**
 * NameSources: the sources of names in order of precedence. A source is a folder beside this file and a line in it.
 */
import type { DockerNetworks } from "./docker/networks.ts";
import type { DefaultBridgeNames } from "./default-bridge/default-bridge.ts";
import type { EngineHostName } from "./host-name/host-name.ts";
import { EXTRA_HOSTS } from "./extra-hosts/extra-hosts.ts";
import type { OtherNetworks } from "./other-networks/other-networks.ts";
import type { NameSource } from "./name-source.ts";

/** Sources that the directory fills. */
interface NameSourceParts {
  readonly networks: DockerNetworks;
  readonly defaultBridge: DefaultBridgeNames;
  readonly engineHost: EngineHostName;
  readonly elsewhere: OtherNetworks;
}

export function nameSources({
  networks,
  defaultBridge,
  engineHost,
  elsewhere,
}: NameSourceParts): readonly NameSource[] {
  return [
    // Docker's names take precedence.
    networks,
    defaultBridge,
    EXTRA_HOSTS,
    engineHost,
    elsewhere,
  ];
}
