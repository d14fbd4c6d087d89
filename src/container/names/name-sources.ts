/**
 * NameSources: the sources of names in order of precedence, as docs/names.md lists them. A source is a folder beside this
 * file and a line in it.
 */
import type { DeclaredNames } from "./declared/declared-names.ts";
import type { DockerNetworks } from "./docker/networks.ts";
import type { ExtraNames } from "./extra/extra-names.ts";
import { NODE_HOST } from "./node-host/node-host.ts";
import type { NameSource } from "./name-source.ts";

/** Sources that the directory fills. */
interface NameSourceParts {
  readonly networks: DockerNetworks;
  readonly declared: DeclaredNames;
  readonly extra: ExtraNames;
}

export function nameSources({ networks, declared, extra }: NameSourceParts): readonly NameSource[] {
  return [
    // Docker's names take precedence.
    networks,
    declared,
    NODE_HOST,
    // Wildcards come after every exact name.
    extra,
  ];
}
