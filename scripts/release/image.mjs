// @ts-check
/**
 * Image: an archive of dns11's image for one platform, without an engine. It is an OCI layout (podman, skopeo, containerd) that
 * `docker load` reads, too. What it runs is said once, in scripts/image/Dockerfile.
 */
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { gunzipSync } from "node:zlib";

import { pack, sha256 } from "./archive.mjs";

const CONFIG = "application/vnd.oci.image.config.v1+json";
const LAYER = "application/vnd.oci.image.layer.v1.tar+gzip";
const MANIFEST = "application/vnd.oci.image.manifest.v1+json";
const INDEX = "application/vnd.oci.image.index.v1+json";
const NANOSECONDS = 1_000_000_000;

/**
 * @typedef {{ mediaType: string, digest: string, size: number }} Descriptor
 * @typedef {{ archive: string, layers: readonly string[], arch: "amd64" | "arm64", name: string, version: string,
 *   source: string, license: string, title: string, revision: string, epoch: number, level?: number }} Image `layers` are folders, the lowest first
 */

/** What the last stage of a Dockerfile says about running. @param {string} text */
function runningOf(text) {
  const stage = text.slice(text.lastIndexOf("\nFROM "));
  const health = /^HEALTHCHECK (.*) CMD (\[.*\])$/m.exec(stage);
  const entry = /^ENTRYPOINT (\[.*\])$/m.exec(stage);
  const command = /^CMD (\[.*\])$/m.exec(stage);
  if (health === null || entry === null || command === null) {
    throw new Error(
      "the last stage of the Dockerfile must have ENTRYPOINT, CMD and HEALTHCHECK on a line each, as lists",
    );
  }
  /** @param {string} flag */
  const seconds = (flag) => {
    const [, value] = new RegExp(`--${flag}=(\\d+)s`).exec(health[1] ?? "") ?? [];
    if (value === undefined) throw new Error(`HEALTHCHECK has no --${flag} in seconds`);
    return Number(value) * NANOSECONDS;
  };
  return {
    Entrypoint: JSON.parse(entry[1] ?? ""),
    Cmd: JSON.parse(command[1] ?? ""),
    Healthcheck: {
      Test: ["CMD", ...JSON.parse(health[2] ?? "")],
      Interval: seconds("interval"),
      Timeout: seconds("timeout"),
      StartPeriod: seconds("start-period"),
    },
  };
}

/** @param {Image} image */
export function writeImage(image) {
  const folder = mkdtempSync(join(dirname(image.archive), ".image-"));
  try {
    const blobs = join(folder, "blobs/sha256");
    mkdirSync(blobs, { recursive: true });
    /** @type {string[]} */
    const plainHashes = [];
    const layers = image.layers.map((layer, at) => {
      const file = join(folder, `layer-${at}.tar.gz`);
      pack(file, layer, ["."], image.epoch, image.level);
      plainHashes.push(
        createHash("sha256")
          .update(gunzipSync(readFileSync(file)))
          .digest("hex"),
      );
      return stored(blobs, file, LAYER);
    });
    const created = new Date(image.epoch * 1000).toISOString().replace(/\.\d+Z$/, "Z");
    const config = storedJson(blobs, CONFIG, {
      created,
      architecture: image.arch,
      os: "linux",
      config: {
        Env: ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
        ...runningOf(readFileSync("scripts/image/Dockerfile", "utf8")),
        Labels: {
          "org.opencontainers.image.title": image.title,
          "org.opencontainers.image.version": image.version,
          "org.opencontainers.image.source": image.source,
          "org.opencontainers.image.licenses": image.license,
          "org.opencontainers.image.revision": image.revision,
          "org.opencontainers.image.created": created,
        },
      },
      rootfs: { type: "layers", diff_ids: plainHashes.map((hash) => `sha256:${hash}`) },
      history: image.layers.map(() => ({ created, created_by: "dns11: make release" })),
    });
    const manifest = storedJson(blobs, MANIFEST, { schemaVersion: 2, mediaType: MANIFEST, config, layers });
    const tag = `${image.name}:${image.version}`;
    writeJson(join(folder, "oci-layout"), { imageLayoutVersion: "1.0.0" });
    writeJson(join(folder, "index.json"), {
      schemaVersion: 2,
      mediaType: INDEX,
      manifests: [
        {
          ...manifest,
          platform: { architecture: image.arch, os: "linux" },
          annotations: { "io.containerd.image.name": tag, "org.opencontainers.image.ref.name": image.version },
        },
      ],
    });
    // For `docker load`.
    writeJson(join(folder, "manifest.json"), [
      { Config: pathOf(config), RepoTags: [tag], Layers: layers.map((layer) => pathOf(layer)) },
    ]);
    pack(image.archive, folder, ["oci-layout", "index.json", "manifest.json", "blobs"], image.epoch);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** @param {Descriptor} descriptor */
function pathOf({ digest }) {
  return `blobs/${digest.replace(":", "/")}`;
}

/** @param {string} blobs @param {string} mediaType @param {unknown} value @returns {Descriptor} */
function storedJson(blobs, mediaType, value) {
  const file = join(blobs, "new.json");
  writeJson(file, value);
  return stored(blobs, file, mediaType);
}

/** Moves a file to where its hash says. @param {string} blobs @param {string} file @param {string} mediaType @returns {Descriptor} */
function stored(blobs, file, mediaType) {
  const hash = sha256(file);
  copyFileSync(file, join(blobs, hash));
  rmSync(file);
  return { mediaType, digest: `sha256:${hash}`, size: statSync(join(blobs, hash)).size };
}

/** @param {string} file @param {unknown} value */
function writeJson(file, value) {
  writeFileSync(file, JSON.stringify(value), { mode: 0o644 });
}
