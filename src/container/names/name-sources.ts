/**
 * NameSources: the sources of names in order of precedence, as docs/names.md lists them. A source is a folder beside this
 * file and a line in it.
 */
import type { DeclaredNames } from "./declared/declared-names.ts";
import type { DockerNetworks } from "./docker/networks.ts";
import type { DefaultBridgeNames } from "./default-bridge/default-bridge.ts";
import type { HostDomainNames } from "./host-domain/host-domain-names.ts";
import type { EngineHostName } from "./host-name/host-name.ts";
import { EXTRA_HOSTS } from "./extra-hosts/extra-hosts.ts";
import type { OtherNetworks } from "./other-networks/other-networks.ts";
import type { ExtraNames } from "./extra/extra-names.ts";
import type { ProjectNames } from "./projects/project-names.ts";
import type { StoppedNames } from "./stopped/stopped-names.ts";
import type { NameSource } from "./name-source.ts";
import type { SwarmNetworks } from "./swarm/swarm-networks.ts";
import type { ServiceZones } from "./zone/service-zones.ts";

/** Sources that the directory fills. */
interface NameSourceParts {
  readonly swarm: SwarmNetworks;
  readonly networks: DockerNetworks;
  readonly declared: DeclaredNames;
  readonly extra: ExtraNames;
  readonly defaultBridge: DefaultBridgeNames;
  readonly engineHost: EngineHostName;
  readonly elsewhere: OtherNetworks;
  readonly hostDomain: HostDomainNames;
  readonly zones: ServiceZones;
  readonly projects: ProjectNames;
  readonly stopped: StoppedNames;
  /** The names of etcd, if it is used. */
  readonly stored?: NameSource | undefined;
}

export function nameSources(parts: NameSourceParts): readonly NameSource[] {
  const {
    swarm,
    networks,
    defaultBridge,
    declared,
    engineHost,
    elsewhere,
    hostDomain,
    projects,
    extra,
    stopped,
    stored,
    zones,
  } = parts;
  return [
    // Reverse names only: the most specific one of an address.
    zones.pointers,
    // Docker's names take precedence: first those that several machines may have.
    swarm,
    swarm.unlessLeft(networks),
    defaultBridge,
    EXTRA_HOSTS,
    declared,
    zones,
    ...(stored === undefined ? [] : [stored]),
    engineHost,
    elsewhere,
    projects,
    hostDomain,
    // Wildcards come after every exact name.
    extra,
    // Whoever else has the name has it now.
    stopped,
  ];
}
