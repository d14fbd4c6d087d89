/**
 * Container state: containers whose programs resolve nothing, whatever they look up, because they end over and over, or because the
 * container whose network they use has been made again. Those need the doctor most, and some of them are not running just now.
 */
import { LIMITS } from "../../base/limits.ts";
import { mapConcurrent } from "../../base/lib/map-concurrent.ts";
import { containerCalled } from "../../base/model/container-choice.ts";
import { type Finding, finding } from "../../base/model/finding.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import type { Engine } from "../../container/watch/engine.ts";
import { ImageConfigs } from "../../container/watch/image-configs.ts";
import { clientCause } from "../../control/causes/broken-clients.ts";
import { type KnownContainer, runningContainer, stoppedContainer } from "../../control/causes/known-container.ts";
import { KnownContainers } from "../../control/causes/known-containers.ts";
import { fromInspect } from "../../control/causes/stopped-container.ts";
import { fixesOf, remedyOf } from "./failing-names.ts";

/** Of more containers that do not run, the newest. */
const ENDED_MAX = 64;

/** The containers that do not run, the newest first. */
export async function endedContainers(engine: Engine): Promise<readonly KnownContainer[]> {
  const images = new ImageConfigs(engine);
  const listed = (await engine.notRunningContainers()).slice(0, ENDED_MAX);
  const all = await mapConcurrent(listed, LIMITS.inspectsAtOnce, async (each) => {
    const json = await engine.container(each.Id);
    return json === undefined ? undefined : stoppedContainer(fromInspect(each, json, await images.split(json)));
  });
  return all.filter((each) => each !== undefined && each.ended?.state !== "running") as KnownContainer[];
}

/** Those that the word stands for, or that end over and over where there is none. */
export function chosenEnded(
  ended: readonly KnownContainer[],
  word: string | undefined,
  project: string | undefined,
): readonly KnownContainer[] {
  const own = ended.filter(({ compose }) => project === undefined || compose?.project === project);
  if (word === undefined) return own.filter((each) => each.ended?.state === "restarting");
  const named = own.map((each) => ({
    id: each.id,
    name: each.name,
    project: each.compose?.project ?? null,
    service: each.compose?.service ?? null,
    each,
  }));
  return [containerCalled(named, word).each];
}

/** What keeps each of them from resolving anything. */
export class ContainerStates {
  readonly #known: KnownContainers;

  constructor(running: readonly ContainerFact[], ended: readonly KnownContainer[]) {
    this.#known = new KnownContainers([...running.map((fact) => runningContainer(fact)), ...ended]);
  }

  findings(id: string): Finding[] {
    const container = this.#known.byId(id);
    const cause = container === undefined ? undefined : clientCause(container, this.#known, Date.now());
    if (cause === undefined) return [];
    return [{ ...finding("container-state", "problem", cause.sentence, remedyOf(cause)), ...fixesOf(cause) }];
  }
}
