/**
 * NameSources: the sources of names in order of precedence. A source is a folder beside this file and a line in it.
 */
import type { DockerNetworks } from "./docker/networks.ts";
import { NODE_HOST } from "./node-host/node-host.ts";
import type { NameSource } from "./name-source.ts";

/** Sources that the directory fills. */
interface NameSourceParts {
  readonly networks: DockerNetworks;
}

export function nameSources({ networks }: NameSourceParts): readonly NameSource[] {
  return [
    // Docker's names take precedence.
    networks,
    NODE_HOST,
  ];
}
