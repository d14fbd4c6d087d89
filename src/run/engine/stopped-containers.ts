/**
 * StoppedContainers: the containers of the engine that are not running, with their aliases. The engine is asked at most once
 * a second, however many readers there are, and a container is inspected once for each time that it stops. Their labels are
 * compared with those of their images, as with running ones. While the engine hangs, the list is the last one.
 */
import { setTimeout as sleep } from "node:timers/promises";

import { CoalescedCall } from "../../base/lib/async.ts";
import { LIMITS } from "../../base/limits.ts";
import type { Engine } from "../../container/watch/engine.ts";
import { type SplitLabels, splitLabels } from "../../container/facts/labels.ts";
import type { ContainerJson, ListedJson } from "../../container/watch/engine-json.ts";
import { ImageConfigs } from "../../container/watch/image-configs.ts";
import { type StoppedContainer, fromInspect, fromList } from "../../control/causes/known-container.ts";

type EngineCalls = Pick<Engine, "notRunningContainers" | "container" | "image" | "labels" | "silentMs">;

interface Known {
  readonly container: StoppedContainer;
  readonly isInspected: boolean;
}

const LIST_EVERY_MS = 1_000;
/** An explanation that waits for an engine that hangs explains nothing. */
const WAIT_MS = 5_000;
/** Of more containers, the older ones are known by name and service, but not by alias; of very many, by name alone. */
const INSPECTED_MAX = 64;

export class StoppedContainers {
  readonly #engine: EngineCalls;
  readonly #isRunning: (id: string) => boolean;
  readonly #waitMs: number;
  readonly #images: ImageConfigs;
  /** The key is the container ID; it is dropped when the container runs again. */
  #known = new Map<string, Known>();
  readonly #call: CoalescedCall<readonly StoppedContainer[]>;
  #last: readonly StoppedContainer[] = [];
  #lastMs = -Infinity;
  /** How often a container has ended. */
  #ends = 0;

  /** `isRunning` tells whether a container is known to run. */
  constructor(engine: EngineCalls, isRunning: (id: string) => boolean, waitMs = WAIT_MS) {
    this.#engine = engine;
    this.#isRunning = isRunning;
    this.#waitMs = waitMs;
    this.#images = new ImageConfigs(engine);
    this.#call = new CoalescedCall(async () => await this.#read(), LIST_EVERY_MS);
  }

  async list(): Promise<readonly StoppedContainer[]> {
    if (performance.now() - this.#lastMs < LIST_EVERY_MS) return this.#last;
    const ends = this.#ends;
    // One that has ended meanwhile may have run when the engine was asked, and does not count as running any more.
    if ((await this.#ask()) && ends !== this.#ends) await this.#ask();
    return this.#last;
  }

  /** Whether the engine has answered. */
  async #ask(): Promise<boolean> {
    const ends = this.#ends;
    const list = await Promise.race([this.#call.get(), this.#waited()]);
    if (list === undefined) return false;
    this.#last = list;
    if (ends === this.#ends) this.#lastMs = performance.now();
    return true;
  }

  async #waited(): Promise<undefined> {
    if ((await this.#engine.silentMs()) === undefined) await sleep(this.#waitMs, undefined, { ref: false });
  }

  /** A container has ended: what was read is out of date. */
  forget(id: string): void {
    this.#ends++;
    this.#lastMs = -Infinity;
    this.#known.delete(id);
  }

  async #read(): Promise<readonly StoppedContainer[]> {
    try {
      const listed = await this.#engine.notRunningContainers();
      // A running container that is not known yet will be known in a moment.
      const stopped = listed.filter(
        ({ Id: id, State: state }) => !this.#isRunning(id) && state !== "running" && state !== "paused",
      );
      const all = new Map<string, Known>();
      // The newest come first.
      for (const [index, json] of stopped.slice(0, LIMITS.stoppedContainers).entries()) {
        const isInspected = index < INSPECTED_MAX;
        const known = this.#known.get(json.Id);
        const isCurrent = known?.container.state === json.State && (known?.isInspected === true || !isInspected);
        const current = isCurrent ? known : undefined;
        all.set(json.Id, current ?? { container: await this.#learn(json, isInspected), isInspected });
      }
      this.#known = all;
      return stopped.map((json) => all.get(json.Id)?.container ?? fromList(json, uncompared(json)));
    } catch {
      // Unknown while the engine is away.
      return [];
    }
  }

  async #learn(listed: ListedJson, isInspected: boolean): Promise<StoppedContainer> {
    const json = isInspected ? await this.#engine.container(listed.Id) : undefined;
    if (json === undefined) return fromList(listed, await this.#images.split(configOf(listed)));
    return fromInspect(listed, json, await this.#images.split(json));
  }
}

/** What a list says of a container, in the form of an inspect: enough to compare its labels with its image's. */
function configOf({ Id, Labels, ImageID, ImageManifestDescriptor = null }: ListedJson): ContainerJson {
  return { Id, Name: "", Config: { Labels: Labels ?? null }, Image: ImageID ?? "", ImageManifestDescriptor };
}

function uncompared({ Labels: labels }: ListedJson): SplitLabels {
  return splitLabels(labels ?? {}, undefined);
}
