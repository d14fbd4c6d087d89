// Proves how an image's labels are had: asked once, remembered by what the image is and not by what it is called, and
// nobody's where they cannot be had.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import type { ContainerJson, ImageJson, ImagePlatform } from "../../../../src/container/watch/engine-json.ts";
import { ImageLabels } from "../../../../src/container/watch/image-labels.ts";

const LABELS = { colour: "blue" };
const AMD64: ImagePlatform = { os: "linux", architecture: "amd64" };

let asked: [string, ImagePlatform | undefined][];
let answer: (id: string) => Promise<ImageJson | undefined>;
let images: ImageLabels;

beforeEach(() => {
  asked = [];
  answer = async () => ({ Os: "linux", Architecture: "amd64", Config: { Labels: LABELS } });
  images = new ImageLabels({
    image: async (id, platform) => {
      asked.push([id, platform]);
      return await answer(id);
    },
  });
});

test("an image is asked once, however many of its containers want to know, and is known at once from then on", async () => {
  const both = [images.of(container(1)), images.of(container(1))];
  assert.ok(both.every((each) => each instanceof Promise));
  assert.deepEqual(await Promise.all(both), [LABELS, LABELS]);
  assert.deepEqual(images.of(container(1)), LABELS);
  assert.deepEqual(asked, [[idOf(1), undefined]]);
});

test("a container without labels is a reason to ask for no image", () => {
  assert.deepEqual(images.of({ ...container(1), Config: { Labels: {} } }), {});
  assert.deepEqual(images.of({ ...container(1), Config: null as never }), {});
  assert.deepEqual(asked, []);
});

// Podman's engine tells some containers without one, and a name can be another image's.
for (const id of [undefined, "", "web:latest", "sha256:abc", `${"a".repeat(64)}/../../x`]) {
  test(`"${id}" is no image's id, and nobody is asked for it`, () => {
    assert.equal(
      images.of({ ...container(1), ...(id === undefined ? { Image: undefined as never } : { Image: id }) }),
      undefined,
    );
    assert.deepEqual(asked, []);
  });
}

test("an id without the name of its hash is one", async () => {
  assert.deepEqual(await images.of({ ...container(1), Image: "a".repeat(64) }), LABELS);
});

test("an image that is gone is asked for again by the next container, and one that cannot be asked as well", async () => {
  answer = async () => undefined;
  assert.equal(await images.of(container(1)), undefined);
  answer = async () => await Promise.reject(new Error("away"));
  await assert.rejects(async () => await images.of(container(1)), /away/);
  answer = async () => ({ Config: null });
  assert.deepEqual(await images.of(container(1)), {});
  assert.equal(asked.length, 3);
});

test("a failure that nobody waits for any more harms nobody", async () => {
  answer = async () => await Promise.reject(new Error("away"));
  void images.of(container(1));
  // The process would end by an unhandled rejection in one of these rounds.
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
  assert.equal((await images.split(container(1))).imageLabels.source, "unknown");
});

test("the platform that the container runs is asked for, and an answer about another one is none", async () => {
  const onArm: ContainerJson = {
    ...container(1),
    ImageManifestDescriptor: { platform: { os: "linux", architecture: "arm64" } },
  };
  const onAmd: ContainerJson = { ...container(1), ImageManifestDescriptor: { platform: AMD64 } };
  assert.deepEqual(await images.of(onAmd), LABELS);
  assert.equal(await images.of(onArm), undefined);
  assert.deepEqual(asked[0], [idOf(1), AMD64]);
  assert.deepEqual(images.of(onAmd), LABELS);
});

test("the labels of an image that says too much are nobody's, and that is remembered", async () => {
  answer = async () => ({ Config: { Labels: { a: "x".repeat(LIMITS.imageLabelChars) } } });
  assert.equal(await images.of(container(1)), undefined);
  assert.equal(images.of(container(1)), undefined);
  assert.equal(asked.length, 1);
});

test("so many images are remembered; the one that was used longest ago is forgotten", async () => {
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
