// Proves how labels and exposed ports of images are determined: inspected once, cached by image id and not by name, and unknown if the image
// cannot be inspected.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import { LabelKeys } from "../../../../src/container/facts/label-keys.ts";
import type { ContainerJson, ImageJson, ImagePlatform } from "../../../../src/container/watch/engine-json.ts";
import { ImageConfigs } from "../../../../src/container/watch/image-configs.ts";

const LABELS = { colour: "blue" };
const CONFIG = { labels: LABELS, exposed: new Set(["80/tcp"]) };
const NOTHING = { labels: {}, exposed: new Set() };
const AMD64: ImagePlatform = { os: "linux", architecture: "amd64" };

let inspected: [string, ImagePlatform | undefined][];
let answer: (id: string) => Promise<ImageJson | undefined>;
let images: ImageConfigs;

beforeEach(() => {
  inspected = [];
  answer = async () => ({
    Os: "linux",
    Architecture: "amd64",
    Config: { Labels: LABELS, ExposedPorts: { "80/tcp": {} } },
  });
  images = new ImageConfigs({
    labels: new LabelKeys(),
    image: async (id, platform) => {
      inspected.push([id, platform]);
      return await answer(id);
    },
  });
});

test("an image is inspected once for all of its containers, and cached from then on", async () => {
  const both = [images.of(container(1)), images.of(container(1))];
  assert.ok(both.every((each) => each instanceof Promise));
  assert.deepEqual(await Promise.all(both), [CONFIG, CONFIG]);
  assert.deepEqual(images.of(container(1)), CONFIG);
  assert.deepEqual(inspected, [[idOf(1), undefined]]);
});

test("a container without labels, and without ports that may be its image's, needs no image", () => {
  const published = { ...container(1), HostConfig: { PortBindings: { "80/tcp": [] } } };
  assert.deepEqual(images.of({ ...container(1), Config: { Labels: {} } }), NOTHING);
  assert.deepEqual(images.of({ ...container(1), Config: null as never }), NOTHING);
  assert.deepEqual(images.of({ ...published, Config: { ExposedPorts: { "80/tcp": {} } } }), NOTHING);
  assert.deepEqual(inspected, []);
});

test("ports that the creator exposes are told from the image's; while that is not known, all are the image's", async () => {
  const json = { ...container(1), Config: { ExposedPorts: { "80/tcp": {}, "6379/tcp": {}, "443/tcp": {} } } };
  const published = { ...json, HostConfig: { PortBindings: { "443/tcp": [] } } };
  const { ports } = await images.split(published);
  assert.deepEqual(ports.published, ["443/tcp"]);
  assert.deepEqual(ports.exposed, ["6379/tcp", "443/tcp"]);
  assert.deepEqual(ports.ofImage, ["80/tcp"]);
  answer = async () => undefined;
  const { ports: unknown } = await images.split({ ...json, Image: idOf(2) });
  assert.deepEqual(unknown, { published: [], exposed: [], ofImage: ["80/tcp", "6379/tcp", "443/tcp"] });
});

test("an image that exposes very many ports does not hide those of the creator", async () => {
  const many = Object.fromEntries(Array.from({ length: 500 }, (_, port) => [`${port + 1}/udp`, {}]));
  answer = async () => ({ Config: { ExposedPorts: many } });
  const { ports } = await images.split({ ...container(1), Config: { ExposedPorts: { ...many, "80/tcp": {} } } });
  assert.deepEqual(ports.exposed, ["80/tcp"]);
  assert.equal(ports.ofImage.length, LIMITS.labelPorts);
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
  assert.deepEqual(await images.of({ ...container(1), Image: "a".repeat(64) }), CONFIG);
});

test("an image that is gone or cannot be inspected is inspected again for the next container", async () => {
  answer = async () => undefined;
  assert.equal(await images.of(container(1)), undefined);
  answer = async () => await Promise.reject(new Error("away"));
  await assert.rejects(async () => await images.of(container(1)), /away/);
  answer = async () => ({ Config: null });
  assert.deepEqual(await images.of(container(1)), NOTHING);
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
  assert.deepEqual(await images.of(onAmd), CONFIG);
  assert.equal(await images.of(onArm), undefined);
  assert.deepEqual(inspected[0], [idOf(1), AMD64]);
  assert.deepEqual(images.of(onAmd), CONFIG);
});

test("the configuration of an image with too many labels or ports is unknown, and that is cached", async () => {
  answer = async () => ({ Config: { Labels: { a: "x".repeat(LIMITS.imageLabelChars) } } });
  assert.equal(await images.of(container(1)), undefined);
  assert.equal(images.of(container(1)), undefined);
  assert.equal(inspected.length, 1);
});

test("the cache of images is limited; the least recently used is evicted", async () => {
  for (let number = 0; number < LIMITS.imagesCached; number++) await images.of(container(number));
  assert.deepEqual(images.of(container(0)), CONFIG);
  await images.of(container(LIMITS.imagesCached));
  assert.deepEqual(images.of(container(0)), CONFIG);
  assert.ok(images.of(container(1)) instanceof Promise);
});

function idOf(number: number): string {
  return `sha256:${number.toString(16).padStart(64, "0")}`;
}

function container(image: number): ContainerJson {
  return { Id: "c", Name: "/c", Image: idOf(image), Config: { Labels: LABELS } };
}
