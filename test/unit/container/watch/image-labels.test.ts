// Proves how image labels are determined: inspected once, cached by image id and not by name, and unknown if the image
// cannot be inspected.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import type { ContainerJson, ImageJson, ImagePlatform } from "../../../../src/container/watch/engine-json.ts";
import { ImageLabels } from "../../../../src/container/watch/image-labels.ts";

const LABELS = { colour: "blue" };
const AMD64: ImagePlatform = { os: "linux", architecture: "amd64" };

let inspected: [string, ImagePlatform | undefined][];
let answer: (id: string) => Promise<ImageJson | undefined>;
let images: ImageLabels;

beforeEach(() => {
  inspected = [];
  answer = async () => ({ Os: "linux", Architecture: "amd64", Config: { Labels: LABELS } });
  images = new ImageLabels({
    image: async (id, platform) => {
      inspected.push([id, platform]);
      return await answer(id);
    },
  });
});

test("an image is inspected once for all of its containers, and cached from then on", async () => {
  const both = [images.of(container(1)), images.of(container(1))];
  assert.ok(both.every((each) => each instanceof Promise));
  assert.deepEqual(await Promise.all(both), [LABELS, LABELS]);
  assert.deepEqual(images.of(container(1)), LABELS);
  assert.deepEqual(inspected, [[idOf(1), undefined]]);
});

test("a container without labels needs no image", () => {
  assert.deepEqual(images.of({ ...container(1), Config: { Labels: {} } }), {});
  assert.deepEqual(images.of({ ...container(1), Config: null as never }), {});
  assert.deepEqual(inspected, []);
});

// Podman reports some containers without an image id, and a name can refer to another image by now.
for (const id of [undefined, "", "web:latest", "sha256:abc", `${"a".repeat(64)}/../../x`]) {
  test(`"${id}" is not an image id, and is not inspected`, () => {
    assert.equal(
      images.of({ ...container(1), ...(id === undefined ? { Image: undefined as never } : { Image: id }) }),
      undefined,
    );
    assert.deepEqual(inspected, []);
  });
}

test("an id without the hash prefix is valid", async () => {
  assert.deepEqual(await images.of({ ...container(1), Image: "a".repeat(64) }), LABELS);
});

test("an image that is gone or cannot be inspected is inspected again for the next container", async () => {
  answer = async () => undefined;
  assert.equal(await images.of(container(1)), undefined);
  answer = async () => await Promise.reject(new Error("away"));
  await assert.rejects(async () => await images.of(container(1)), /away/);
  answer = async () => ({ Config: null });
  assert.deepEqual(await images.of(container(1)), {});
  assert.equal(inspected.length, 3);
});

test("a failure after the wait has timed out is ignored", async () => {
  answer = async () => await Promise.reject(new Error("away"));
  void images.of(container(1));
  // An unhandled rejection would end the process in one of these rounds.
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
  assert.equal((await images.split(container(1))).imageLabels.source, "unknown");
});

test("the container's platform is requested, and a response for another platform is ignored", async () => {
  const onArm: ContainerJson = {
    ...container(1),
    ImageManifestDescriptor: { platform: { os: "linux", architecture: "arm64" } },
  };
  const onAmd: ContainerJson = { ...container(1), ImageManifestDescriptor: { platform: AMD64 } };
  assert.deepEqual(await images.of(onAmd), LABELS);
  assert.equal(await images.of(onArm), undefined);
  assert.deepEqual(inspected[0], [idOf(1), AMD64]);
  assert.deepEqual(images.of(onAmd), LABELS);
});

test("the labels of an image with too many are unknown, and that is cached", async () => {
  answer = async () => ({ Config: { Labels: { a: "x".repeat(LIMITS.imageLabelChars) } } });
  assert.equal(await images.of(container(1)), undefined);
  assert.equal(images.of(container(1)), undefined);
  assert.equal(inspected.length, 1);
});

test("the cache of images is limited; the least recently used is evicted", async () => {
  for (let number = 0; number < LIMITS.imagesCached; number++) await images.of(container(number));
  assert.deepEqual(images.of(container(0)), LABELS);
  await images.of(container(LIMITS.imagesCached));
  assert.deepEqual(images.of(container(0)), LABELS);
  assert.ok(images.of(container(1)) instanceof Promise);
});

function idOf(number: number): string {
  return `sha256:${number.toString(16).padStart(64, "0")}`;
}

function container(image: number): ContainerJson {
  return { Id: "c", Name: "/c", Image: idOf(image), Config: { Labels: LABELS } };
}
