/**
 * ImageLabels: the labels baked into images, each image asked once. An image is named by its id, which stands for what is in
 * it, so what was told once stays true. A name is no id: it may be another image's by now.
 */
import { LIMITS } from "../../base/limits.ts";
import { type Labels, type SplitLabels, splitLabels } from "../registry/labels.ts";
import type { Engine } from "./engine.ts";
import type { ContainerJson, ImageJson, ImagePlatform } from "./engine-json.ts";
import { mergedLabels } from "./translate.ts";

const ID = /^(?:sha256:)?[0-9a-f]{64}$/;

export class ImageLabels {
  readonly #engine: Pick<Engine, "image">;
  /** Undefined for an image that says too much. The one that was used last stands last. */
  readonly #known = new Map<string, Labels | undefined>();
  readonly #asked = new Map<string, Promise<Labels | undefined>>();

  constructor(engine: Pick<Engine, "image">) {
    this.#engine = engine;
  }

  /** Of a container's image: at once where nothing has to be asked. Undefined where nobody can tell them. */
  of(json: ContainerJson): Labels | undefined | Promise<Labels | undefined> {
    const { Image: id = "", ImageManifestDescriptor: descriptor } = json;
    if (Object.keys(mergedLabels(json)).length === 0) return {};
    if (!ID.test(id)) return undefined;
    const platform = descriptor?.platform ?? undefined;
    const key = `${id} ${JSON.stringify(platform) ?? ""}`;
    if (this.#known.has(key)) return this.#use(key);
    const asked = this.#asked.get(key) ?? this.#ask(key, id, platform).finally(() => this.#asked.delete(key));
    this.#asked.set(key, asked);
    // Whoever asked may have given up by the time it fails.
    asked.catch(() => undefined);
    return asked;
  }

  /** A container's labels told apart; for whoever may wait, and takes no answer for none. */
  async split(json: ContainerJson): Promise<SplitLabels> {
    const image = await Promise.resolve(this.of(json)).catch(() => undefined);
    return splitLabels(mergedLabels(json), image);
  }

  #use(key: string): Labels | undefined {
    const labels = this.#known.get(key);
    this.#known.delete(key);
    this.#known.set(key, labels);
    return labels;
  }

  async #ask(key: string, id: string, platform: ImagePlatform | undefined): Promise<Labels | undefined> {
    const json = await this.#engine.image(id, platform);
    // It may be there again later.
    if (json === undefined || !isOf(json, platform)) return undefined;
    const labels = json.Config?.Labels ?? {};
    const chars = Object.entries(labels).reduce((sum, [name, value]) => sum + name.length + value.length, 0);
    const oldest = this.#known.size < LIMITS.imagesCached ? undefined : this.#known.keys().next().value;
    if (oldest !== undefined) this.#known.delete(oldest);
    this.#known.set(key, chars > LIMITS.imageLabelChars ? undefined : labels);
    return this.#known.get(key);
  }
}

/** Engines that know several platforms of an image may tell of another one than the container runs. */
function isOf({ Os: os, Architecture: architecture }: ImageJson, platform: ImagePlatform | undefined): boolean {
  return platform === undefined || (platform.os === os && platform.architecture === architecture);
}
