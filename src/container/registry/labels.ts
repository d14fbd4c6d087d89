/**
 * Labels: who said each label of a container. Engines merge an image's labels into those given when the container is
 * created. A label that the image has under the same key with the same value counts as the image's; all others are the
 * creator's. Where the image cannot be inspected, every label counts as the image's, because nobody can tell.
 */
import type { LabelPolicy } from "../../base/model/label-policy.ts";

export type Labels = Readonly<Record<string, string>>;

interface LabelsOfImage {
  readonly labels: Labels;
  /** "known": compared with the image; "awaited": the image is being asked; "unknown": nobody can tell them apart. */
  readonly source: "known" | "awaited" | "unknown";
}

export interface SplitLabels {
  /** Given by whoever created the container. */
  readonly labels: Labels;
  readonly imageLabels: LabelsOfImage;
}

/**
 * Compose bakes these into the images that it builds, and gives the same ones to every container that it creates. Its hash it
 * gives to containers alone; where the creator has given that, these are the creator's as well.
 */
const COMPOSE_HASH = "com.docker.compose.config-hash";
const COMPOSE_SHARED = new Set(["project", "service", "version"].map((name) => `com.docker.compose.${name}`));

/** `image` are the image's own, as far as anybody knows them. */
export function splitLabels(merged: Labels, image: Labels | "awaited" | undefined): SplitLabels {
  const all = Object.entries(merged);
  if (image === undefined) return { labels: {}, imageLabels: { labels: merged, source: "unknown" } };
  if (image === "awaited") return { labels: {}, imageLabels: { labels: merged, source: "awaited" } };
  const isSame = (key: string): boolean => Object.hasOwn(image, key) && image[key] === merged[key];
  const isByCompose = Object.hasOwn(merged, COMPOSE_HASH) && !isSame(COMPOSE_HASH);
  const isImages = ([key]: readonly [string, string]): boolean =>
    isSame(key) && !(isByCompose && COMPOSE_SHARED.has(key));
  return {
    labels: Object.fromEntries(all.filter((entry) => !isImages(entry))),
    imageLabels: { labels: Object.fromEntries(all.filter(isImages)), source: "known" },
  };
}

/** The labels that count: the creator's, and the image's where the operator trusts images. */
export function effectiveLabels({ labels, imageLabels }: SplitLabels, { trustsImages }: LabelPolicy): Labels {
  return trustsImages ? { ...imageLabels.labels, ...labels } : labels;
}

/** What is told where a label does not count because it is the image's; undefined where the image has no such label. */
export function ignoredLabelWarning(
  key: string,
  { imageLabels }: SplitLabels,
  { trustsImages }: LabelPolicy,
): string | undefined {
  const { labels, source } = imageLabels;
  if (trustsImages || !Object.hasOwn(labels, key)) return undefined;
  return source === "unknown"
    ? `its label ${key} counts as its image's, which cannot be inspected, and is ignored: create the container anew ` +
        "from an image that is there, or trust images with --trust-image-labels"
    : `its image's label ${key} is ignored: an image may only opt out; give the label to the container with another ` +
        "text than the image has, or trust images with --trust-image-labels";
}
