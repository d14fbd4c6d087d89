/**
 * ImageConfigs: the labels and exposed ports of images, each image inspected once, and again when further labels are read. An
 * image id stands for the image's content, so they never change. A name is not an id: it may refer to another image by now.
 */
import { LIMITS } from "../../base/limits.ts";
import type { Engine } from "./engine.ts";
import type { ContainerJson, ImageJson, ImagePlatform } from "./engine-json.ts";
import {
  type ImageConfig,
  NO_CONFIG,
  type SplitConfig,
  mayHaveImageConfig,
  portsIn,
  splitConfig,
} from "./split-config.ts";

const ID = /^(?:sha256:)?[0-9a-f]{64}$/;

export class ImageConfigs {
  readonly #engine: Pick<Engine, "image" | "labels">;
  /** Undefined for an image with too many labels or ports. In order of use, the latest last. */
  readonly #cache = new Map<string, ImageConfig | undefined>();
  readonly #pending = new Map<string, Promise<ImageConfig | undefined>>();

  constructor(engine: Pick<Engine, "image" | "labels">) {
    this.#engine = engine;
  }

  /** What a container's image brings, without a promise if it is known. Undefined if it cannot be determined. */
  of(json: ContainerJson): ImageConfig | undefined | Promise<ImageConfig | undefined> {
    const { Image: id = "", ImageManifestDescriptor: descriptor } = json;
    if (!mayHaveImageConfig(json)) return NO_CONFIG;
    if (!ID.test(id)) return undefined;
    const platform = descriptor?.platform ?? undefined;
    const key = `${this.#engine.labels.generation} ${id} ${JSON.stringify(platform) ?? ""}`;
    if (this.#cache.has(key)) return this.#cached(key);
    const pending = this.#pending.get(key) ?? this.#inspect(key, id, json).finally(() => this.#pending.delete(key));
    this.#pending.set(key, pending);
    // The caller may have stopped waiting by the time it fails.
    pending.catch(() => undefined);
    return pending;
  }

  /** A container's split configuration, for callers that can wait; a failed inspect counts as an unknown image. */
  async split(json: ContainerJson): Promise<SplitConfig> {
    const image = await Promise.resolve(this.of(json)).catch(() => undefined);
    return splitConfig(json, image);
  }

  #cached(key: string): ImageConfig | undefined {
    const config = this.#cache.get(key);
    this.#cache.delete(key);
    this.#cache.set(key, config);
    return config;
  }

  async #inspect(key: string, id: string, container: ContainerJson): Promise<ImageConfig | undefined> {
    const platform = container.ImageManifestDescriptor?.platform ?? undefined;
    const json = await this.#engine.image(id, platform, container.Id);
    // Not cached: it may exist later.
    if (json === undefined || !hasPlatform(json, platform)) return undefined;
    const labels = json.Config?.Labels ?? {};
    const ports = portsIn(json.Config?.ExposedPorts);
    const texts = [...Object.entries(labels).flat(), ...ports];
    const chars = texts.reduce((sum, { length }) => sum + length, 0);
    const oldest = this.#cache.size < LIMITS.imagesCached ? undefined : this.#cache.keys().next().value;
    if (oldest !== undefined) this.#cache.delete(oldest);
    this.#cache.set(key, chars > LIMITS.imageLabelChars ? undefined : { labels, exposed: new Set(ports) });
    return this.#cache.get(key);
  }
}

/** An engine with several platforms of an image may return another one than the container's. */
function hasPlatform({ Os: os, Architecture: architecture }: ImageJson, platform: ImagePlatform | undefined): boolean {
  return platform === undefined || (platform.os === os && platform.architecture === architecture);
}
