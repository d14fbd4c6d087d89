/**
 * The sources of names, in the order in which they count. A source is a folder beside this file, and a line in it.
 */
import type { DockerNetworks } from "./docker/networks.ts";
import { NODE_HOST } from "./node-host/node-host.ts";
import type { NameSource } from "./name-source.ts";

/** Those that somebody fills. */
interface NameSourceParts {
  readonly networks: DockerNetworks;
}

export function nameSources({ networks }: NameSourceParts): readonly NameSource[] {
  return [
    // What Docker would answer goes before all else.
    networks,
    NODE_HOST,
  ];
}
