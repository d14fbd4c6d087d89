/**
 * KnownContainer: a container of this engine, running or not, as far as causes need it: its names on each network and its
 * place in a Compose project.
 */
import type { ComposeProjectText } from "../../base/model/compose.ts";
import type { DefaultBridgeSetting } from "../../base/model/name-choices.ts";
import { type ComposeService, composeServiceOf } from "../../container/facts/compose.ts";
import type { SplitLabels } from "../../container/facts/labels.ts";
import { type ContainerFact, DEFAULT_BRIDGE, isUserDefined } from "../../container/facts/fact.ts";
import type { ContainerJson, EndpointJson, ListedJson } from "../../container/watch/engine-json.ts";
import { bareName } from "../../container/watch/translate.ts";
import { inSlices } from "../../base/lib/slices.ts";
import { addressBytes } from "../../base/model/address.ts";

export interface KnownEndpoint {
  readonly networkName: string;
  /** Lower case. */
  readonly names: readonly string[];
  readonly ipv4: string | undefined;
  readonly ipv6: string | undefined;
  /** Compose has connected it, not an operator. */
  readonly isComposed?: boolean;
  readonly ipv4Gateway?: string | undefined;
}

/** How a container ended; it may also not have been started yet. */
export interface EndedState {
  readonly state: string;
  readonly exitCode: number | undefined;
  readonly atMs: number | undefined;
}

export interface KnownContainer {
  readonly id: string;
  readonly name: string;
  readonly compose: ComposeService | undefined;
  /** What the files of its Compose project say, as far as that is known. */
  readonly project?: (() => ComposeProjectText | undefined) | undefined;
  /** The network that it was created on. */
  readonly networkMode?: string;
  readonly isPaused: boolean;
  /** Starts by its restart policy, and the last start on the clock of `Date.now`. */
  readonly restarts?: number;
  readonly startedMs?: number;
  /** It is not known yet which names it has on its networks: it is being started. */
  readonly isStarting?: boolean;
  /** It is on the default bridge, whether that has names or not. */
  readonly isOnDefaultBridge: boolean;
  /** On networks with names. */
  readonly endpoints: readonly KnownEndpoint[];
  /** undefined while it is running. */
  readonly ended: EndedState | undefined;
}

/** A container that is not running, as the engine reports it. */
export interface StoppedContainer extends EndedState, SplitLabels {
  readonly id: string;
  readonly name: string;
  readonly networks: readonly { readonly name: string; readonly aliases: readonly string[] }[];
  readonly networkMode?: string | undefined;
  /** Starts by its restart policy. */
  readonly restarts?: number | undefined;
}

export function runningContainer(fact: ContainerFact, setting: DefaultBridgeSetting = "off"): KnownContainer {
  const { onDefaultBridge } = fact;
  const bridge = onDefaultBridge && {
    ...onDefaultBridge,
    networkName: DEFAULT_BRIDGE,
    isComposed: false,
    ipv4Gateway: undefined,
  };
  return {
    id: fact.id,
    name: fact.name,
    compose: composeServiceOf(fact),
    networkMode: fact.networkMode,
    restarts: fact.restarts ?? 0,
    startedMs: Date.parse(fact.startedAt) || 0,
    isPaused: fact.isPaused,
    isStarting: fact.isStarting === true || fact.isUndescribed === true,
    isOnDefaultBridge: bridge !== undefined,
    endpoints: [
      ...fact.endpoints.filter(({ networkName }) => isUserDefined(networkName)),
      ...(setting === "off" || bridge === undefined ? [] : [bridge]),
    ].map(({ networkName, names, ipv4, ipv6, ipv4Gateway, isComposed = false }) => ({
      networkName,
      names: lowered(names),
      ipv4,
      ipv6,
      ipv4Gateway,
      isComposed,
    })),
    ended: undefined,
  };
}

/** Its service is among its names, because Compose gives it as an alias on every network. */
export function stoppedContainer(
  { id, name, labels, imageLabels, networks, networkMode, restarts, ...ended }: StoppedContainer,
  setting: DefaultBridgeSetting = "off",
): KnownContainer {
  const compose = composeServiceOf({ labels, imageLabels });
  const common = [name, ...(compose === undefined ? [] : [compose.service])];
  return {
    id,
    name,
    compose,
    ...(networkMode !== undefined && { networkMode }),
    ...(restarts !== undefined && { restarts }),
    isPaused: false,
    isOnDefaultBridge: networks.some((network) => network.name === DEFAULT_BRIDGE),
    endpoints: networks
      .filter((network) => isUserDefined(network.name) || (setting === "names" && network.name === DEFAULT_BRIDGE))
      .map((network) => ({
        networkName: network.name,
        names: lowered([...new Set([...common, ...network.aliases])]),
        ipv4: undefined,
        ipv6: undefined,
      })),
    ended,
  };
}

function lowered(names: readonly string[]): string[] {
  return names.map((name) => name.toLowerCase());
}

/** The time of a container that has never ended. */
const NEVER = "0001-01-01T00:00:00Z";

/**
 * A container that does not run, from what the engine lists, and from what it says of the container alone: only that has
 * its aliases and how it ended.
 */
export function fromList(
  { Id: id, Names: names, State: state, NetworkSettings: settings }: ListedJson,
  { labels, imageLabels }: SplitLabels,
): StoppedContainer {
  return {
    id,
    name: bareName(names?.[0] ?? ""),
    state: state ?? "",
    exitCode: undefined,
    atMs: undefined,
    labels,
    imageLabels,
    networks: Object.keys(settings?.Networks ?? {}).map((name) => ({ name, aliases: [] })),
  };
}

export function fromInspect(
  listed: ListedJson,
  { Name: name, State: state, NetworkSettings: settings, RestartCount: restarts, HostConfig: config }: ContainerJson,
  split: SplitLabels,
): StoppedContainer {
  const finished = state?.FinishedAt ?? NEVER;
  // It was listed between two starts, and runs again by now: its code is that of no end.
  const isUpAgain = state?.Running === true && state.Restarting !== true;
  return {
    ...fromList(listed, split),
    name: bareName(name),
    ...(config?.NetworkMode !== undefined && { networkMode: config.NetworkMode }),
    ...(restarts !== undefined && { restarts }),
    exitCode: finished === NEVER || isUpAgain ? undefined : state?.ExitCode,
    atMs: finished === NEVER ? undefined : Date.parse(finished) || undefined,
    networks: Object.entries(settings?.Networks ?? {}).map(([network, endpoint]) => ({
      name: network,
      aliases: aliasesOf(endpoint),
    })),
  };
}

function aliasesOf({ Aliases: aliases, DNSNames: names }: EndpointJson): string[] {
  return [...(aliases ?? []), ...(names ?? [])];
}

/** Where a name is known: the endpoints that have it; none for a container that has it on no network with names. */
export interface NamePlace {
  readonly container: KnownContainer;
  readonly endpoints: readonly KnownEndpoint[];
}

/** An endpoint that has an address. */
interface AddressPlace {
  readonly container: KnownContainer;
  readonly endpoint: KnownEndpoint;
}

/**
 * All containers of this engine by their names, so that the place of a name is found without a search.
 * It is built for one report.
 */
export class KnownContainers {
  readonly all: KnownContainer[] = [];
  readonly #byName = new Map<string, Set<KnownContainer>>();
  readonly #byId = new Map<string, KnownContainer>();
  readonly #byAddress = new Map<string, AddressPlace[]>();
  /** The key is the name of the Compose service in lower case. */
  readonly #byService = new Map<string, KnownContainer[]>();

  constructor(all: Iterable<KnownContainer>) {
    for (const container of all) this.#add(container);
  }

  /** The same in slices. */
  static async gather(all: Iterable<KnownContainer>): Promise<KnownContainers> {
    const known = new KnownContainers([]);
    await inSlices(known.#adding(all));
    return known;
  }

  byId(id: string): KnownContainer | undefined {
    return this.#byId.get(id);
  }

  /** The containers of Compose services with this name, of all projects; `service` is in lower case. */
  ofService(service: string): readonly KnownContainer[] {
    return this.#byService.get(service) ?? [];
  }

  /** The endpoints with an address; several if networks have the same subnet. */
  withAddress(address: string): readonly AddressPlace[] {
    return this.#byAddress.get(addressKey(address)) ?? [];
  }

  /** The containers with a name, alone or as NAME.NETWORK; `name` is in lower case. */
  places(name: string): NamePlace[] {
    const found = new Map<KnownContainer, Set<KnownEndpoint>>();
    const add = (container: KnownContainer, endpoint?: KnownEndpoint): void => {
      const endpoints = found.get(container) ?? new Set();
      found.set(container, endpoints);
      if (endpoint !== undefined) endpoints.add(endpoint);
    };
    for (const container of this.#byName.get(name) ?? []) {
      const endpoints = container.endpoints.filter(({ names }) => names.includes(name));
      if (endpoints.length === 0 && container.endpoints.length === 0) add(container);
      for (const endpoint of endpoints) add(container, endpoint);
    }
    // The name of its service is an alias on each network with names, so it has it on none.
    for (const container of this.#byService.get(name) ?? []) {
      if (container.endpoints.length === 0 && container.compose?.isOneOff !== true) add(container);
    }
    for (let dot = name.indexOf("."); dot > 0; dot = name.indexOf(".", dot + 1)) {
      const [bare, network] = [name.slice(0, dot), name.slice(dot + 1)];
      for (const container of this.#byName.get(bare) ?? []) {
        for (const endpoint of container.endpoints) {
          if (endpoint.networkName.toLowerCase() === network && endpoint.names.includes(bare)) add(container, endpoint);
        }
      }
    }
    return [...found].map(([container, endpoints]) => ({ container, endpoints: [...endpoints] }));
  }

  *#adding(all: Iterable<KnownContainer>): Generator<void> {
    for (const container of all) yield this.#add(container);
  }

  #add(container: KnownContainer): void {
    this.all.push(container);
    this.#byId.set(container.id, container);
    const service = container.compose?.service.toLowerCase();
    if (service !== undefined) {
      const others = this.#byService.get(service);
      if (others === undefined) this.#byService.set(service, [container]);
      else others.push(container);
    }
    this.#addName(container.name.toLowerCase(), container);
    for (const endpoint of container.endpoints) {
      for (const name of endpoint.names) this.#addName(name, container);
      for (const address of [endpoint.ipv4, endpoint.ipv6]) {
        if (address !== undefined) this.#addAddress(addressKey(address), { container, endpoint });
      }
    }
  }

  #addName(name: string, container: KnownContainer): void {
    const others = this.#byName.get(name);
    if (others === undefined) this.#byName.set(name, new Set([container]));
    else others.add(container);
  }

  #addAddress(key: string, place: AddressPlace): void {
    const others = this.#byAddress.get(key);
    if (others === undefined) this.#byAddress.set(key, [place]);
    else others.push(place);
  }
}

/** The same for all texts of an address. */
function addressKey(address: string): string {
  return addressBytes(address)?.join(".") ?? address;
}
