/**
 * KnownContainer: a container of this engine, running or not, as far as causes need it: its names on each network and its
 * place in a Compose project.
 */
import type { ComposeProjectText } from "../../base/model/compose-file.ts";
import type { DefaultBridgeSetting } from "../../base/model/name-choices.ts";
import { type ComposePlace, composePlaceOf } from "../../container/facts/compose.ts";
import type { SplitLabels } from "../../container/facts/labels.ts";
import { type ContainerFact, DEFAULT_BRIDGE, isUserDefined } from "../../container/facts/fact.ts";

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
  readonly compose: ComposePlace | undefined;
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
    compose: composePlaceOf(fact),
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
  const compose = composePlaceOf({ labels, imageLabels });
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
