// Ports of the control socket for an engine with a few containers on networks with one letter each.

import { DEFAULT_BEHAVIOUR, type Behaviour } from "../../../src/base/model/behaviour.ts";
import type { NameSettings } from "../../../src/container/names/source/name-settings.ts";
import type { Directory } from "../../../src/container/registry/directory.ts";
import type { ContainerFact } from "../../../src/container/facts/fact.ts";
import type { StoppedContainer } from "../../../src/control/causes/known-container.ts";
import { type ControlPorts, NO_FEATURE_FIELDS } from "../../../src/control/situation/ports.ts";
import { aContainer, anEndpoint } from "../../support/scripted/builders.ts";
import { type DirectoryParts, aDirectory } from "./names.ts";

const COMPOSE = "com.docker.compose.";

/** A container of a project with its service as an alias, on networks with one letter each. */
export function composed(project: string, service: string, networks: string, last: number): ContainerFact {
  const name = `${project}-${service}-1`;
  return aContainer({
    id: name.padEnd(64, "0"),
    name,
    labels: { [`${COMPOSE}project`]: project, [`${COMPOSE}service`]: service },
    imageLabels: { labels: {}, source: "known" },
    endpoints: [...networks].map((network, index) =>
      anEndpoint({ networkId: network, networkName: network, names: [name, service], ipv4: `10.${index}.0.${last}` }),
    ),
  });
}

interface Prepared {
  readonly behaviour?: Behaviour;
  readonly settings?: Partial<NameSettings>;
  /** Tells the directory what it would be told before containers are known. */
  readonly prepare?: (directory: Directory) => void;
  readonly makeNames?: DirectoryParts["makeNames"];
  readonly shared?: DirectoryParts["shared"];
}

export function portsOf(
  facts: readonly ContainerFact[],
  stopped: readonly StoppedContainer[] = [],
  { behaviour = DEFAULT_BEHAVIOUR, settings, prepare, makeNames, shared }: Prepared = {},
): ControlPorts {
  const networks = [..."abcd"].map((id) => ({ id, name: id }));
  const directory = aDirectory([], { names: settings ?? {}, networks, makeNames, shared });
  prepare?.(directory);
  for (const fact of facts) directory.putContainer(fact);
  const containers = {
    facts: directory.containers,
    clients: { of: () => undefined, recentOf: () => undefined },
    viewOf: (fact: ContainerFact) => directory.viewOf(fact),
    stopped: async () => await Promise.resolve(stopped),
    defaultBridge: () => "off",
    formerAddresses: () => [],
    formerNames: () => [],
    ofFeatures: NO_FEATURE_FIELDS,
  };
  const resolver = () => ({ behaviour });
  return { containers, resolver, histories: { histories: () => [] } } as unknown as ControlPorts;
}
