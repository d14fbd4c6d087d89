/**
 * ImageLabels: the labels of images, each image inspected once. An image id stands for the image's content, so its
 * labels never change. A name is not an id: it may refer to another image by now.
 */
import { LIMITS } from "../../base/limits.ts";
import { type Labels, type SplitLabels, splitLabels } from "../registry/labels.ts";
import type { Engine } from "./engine.ts";
import type { ContainerJson, ImageJson, ImagePlatform } from "./engine-json.ts";
import { mergedLabels } from "./translate.ts";

const ID = /^(?:sha256:)?[0-9a-f]{64}$/;

export class ImageLabels {
  readonly #engine: Pick<Engine, "image">;
  /** Undefined for an image with too many labels. In order of use, the latest last. */
  readonly #cache = new Map<string, Labels | undefined>();
  readonly #pending = new Map<string, Promise<Labels | undefined>>();

  constructor(engine: Pick<Engine, "image">) {
    this.#engine = engine;
  }

  /** The labels of a container's image, without a promise if they are known. Undefined if they cannot be determined. */
  of(json: ContainerJson): Labels | undefined | Promise<Labels | undefined> {
    const { Image: id = "", ImageManifestDescriptor: descriptor } = json;
    if (Object.keys(mergedLabels(json)).length === 0) return {};
    if (!ID.test(id)) return undefined;
    const platform = descriptor?.platform ?? undefined;
    const key = `${id} ${JSON.stringify(platform) ?? ""}`;
    if (this.#cache.has(key)) return this.#cached(key);
    const pending = this.#pending.get(key) ?? this.#inspect(key, id, platform).finally(() => this.#pending.delete(key));
    this.#pending.set(key, pending);
    // The caller may have stopped waiting by the time it fails.
    pending.catch(() => undefined);
    return pending;
  }

  /** A container's split labels, for callers that can wait; a failed inspect counts as unknown labels. */
  async split(json: ContainerJson): Promise<SplitLabels> {
    const image = await Promise.resolve(this.of(json)).catch(() => undefined);
    return splitLabels(mergedLabels(json), image);
  }

  #cached(key: string): Labels | undefined {
    const labels = this.#cache.get(key);
    this.#cache.delete(key);
    this.#cache.set(key, labels);
    return labels;
  }

  async #inspect(key: string, id: string, platform: ImagePlatform | undefined): Promise<Labels | undefined> {
    const json = await this.#engine.image(id, platform);
    // Not cached: it may exist later.
    if (json === undefined || !hasPlatform(json, platform)) return undefined;
    const labels = json.Config?.Labels ?? {};
    const chars = Object.entries(labels).reduce((sum, [name, value]) => sum + name.length + value.length, 0);
    const oldest = this.#cache.size < LIMITS.imagesCached ? undefined : this.#cache.keys().next().value;
    if (oldest !== undefined) this.#cache.delete(oldest);
    this.#cache.set(key, chars > LIMITS.imageLabelChars ? undefined : labels);
    return this.#cache.get(key);
  }
}

/** An engine with several platforms of an image may return another one than the container's. */
function hasPlatform({ Os: os, Architecture: architecture }: ImageJson, platform: ImagePlatform | undefined): boolean {
  return platform === undefined || (platform.os === os && platform.architecture === architecture);
}
