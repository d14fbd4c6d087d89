/**
 * Labels: splits a container's labels into its creator's and its image's. Engines merge the two when a container is
 * created. A label that the image has with the same key and value counts as the image's; all others are the creator's.
 * If the image cannot be inspected, or has too many labels to compare, every label counts as the image's: otherwise its
 * author would only have to make the comparison fail.
 */
import { COMPOSE_LABEL, COMPOSE_PREFIX } from "../../base/model/compose.ts";
import type { LabelPolicy } from "../../base/model/name-choices.ts";

export type Labels = Readonly<Record<string, string>>;

interface LabelsOfImage {
  readonly labels: Labels;
  /** "known": compared with the image; "awaited": the image is being inspected; "unknown": it cannot be. */
  readonly source: "known" | "awaited" | "unknown";
}

export interface SplitLabels {
  /** The container's creator set them. */
  readonly labels: Labels;
  readonly imageLabels: LabelsOfImage;
}

/**
 * Compose puts these labels into the images that it builds and sets the same ones on every container that it creates.
 * It sets its config hash on containers only; with that label from the creator, these count as the creator's as well.
 */
const COMPOSE_HASH = COMPOSE_LABEL.hash;
const COMPOSE_SHARED = new Set(["project", "service", "version"].map((name) => `${COMPOSE_PREFIX}${name}`));

/** `image` are the image's labels; undefined if they are not known. */
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

/** The labels in effect: the creator's, and the image's if the operator trusts images. */
export function effectiveLabels({ labels, imageLabels }: SplitLabels, { trustsImages }: LabelPolicy): Labels {
  return trustsImages ? { ...imageLabels.labels, ...labels } : labels;
}

/** The warning for a label that is ignored because it is the image's; undefined if the image has no such label. */
export function ignoredLabelWarning(
  key: string,
  { imageLabels }: SplitLabels,
  { trustsImages }: LabelPolicy,
): string | undefined {
  const { labels, source } = imageLabels;
  if (trustsImages || !Object.hasOwn(labels, key)) return undefined;
  return source === "unknown"
    ? `label ${key} is ignored, because its image cannot be inspected, or has too many labels, and the label may come from there: re-create ` +
        "the container from another image, or set trust-image-labels: true"
    : `label ${key} of the image is ignored, because an image may only opt out: set the label on the container, with a ` +
        "value that differs from the image's, or set trust-image-labels: true";
}
