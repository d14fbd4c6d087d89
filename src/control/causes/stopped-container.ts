/**
 * StoppedContainer: a container that does not run, from what the engine lists, and from what it says of the container alone: only that has
 * its aliases and how it ended.
 */
import type { SplitLabels } from "../../container/facts/labels.ts";
import type { ContainerJson, EndpointJson, ListedJson } from "../../container/watch/engine-json.ts";
import { bareName } from "../../container/watch/translate.ts";
import type { StoppedContainer } from "./known-container.ts";

/** The time of a container that has never ended. */
const NEVER = "0001-01-01T00:00:00Z";

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
