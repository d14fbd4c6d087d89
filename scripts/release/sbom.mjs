// @ts-check
/**
 * Software bill of materials in CycloneDX: every part of another project that a release contains. That are the npm packages, the
 * Node in the .deb, the archive and the image, the library in the page of `dns11 ui`, and the Debian packages in the image.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

/** Bundled into dist/ui, and so part of every package although only building needs it. */
const BUNDLED_DEVELOPMENT = ["node_modules/preact"];
/** Packages of Debian for each architecture have a hash of their own. */
const DEB = /^([0-9a-f]{64}) {2}([^_]+)_([^_]+)_([a-z0-9]+)\.deb$/;

/**
 * @typedef {{ name?: string, version: string, dev?: boolean, optional?: boolean, os?: string[] | string, cpu?: string[] | string, license?: string,
 *   integrity?: string, dependencies?: Record<string, string>, optionalDependencies?: Record<string, string> }} Locked
 * @typedef {{ path: string, ref: string, locked: Locked }} Part
 */

/** @param {number} epoch */
export function billOfMaterials(epoch) {
  const manifest = JSON.parse(readFileSync("package.json", "utf8"));
  const lock = lockedIn("package-lock.json");
  const parts = Object.entries(lock)
    .filter(([path, locked]) => path !== "" && isContained(path, locked))
    .map(([path, locked]) => partOf(path, locked));
  const nodes = Object.entries(lockedIn("scripts/release/node/package-lock.json"))
    .filter(([path]) => path !== "")
    .map(([path, locked]) => partOf(path, locked));
  const packages = debianPackages();
  const root = {
    "bom-ref": `pkg:npm/${manifest.name}@${manifest.version}`,
    type: "application",
    name: manifest.name,
    version: manifest.version,
    description: manifest.description,
    licenses: licensesOf(manifest.license),
    purl: `pkg:npm/${manifest.name}@${manifest.version}`,
    externalReferences: [
      { type: "vcs", url: manifest.repository.url.replace(/^git\+/, "") },
      { type: "issue-tracker", url: manifest.bugs.url },
      { type: "website", url: manifest.homepage },
    ],
  };
  // Packages of one name and version may be installed in several places.
  const components = unique([
    ...parts.map((part) => npmComponent(part, "npm package, Debian package, archive, image")),
    ...nodes.map((part) => npmComponent(part, "Debian package, archive, image")),
    ...packages,
  ]);
  const byPath = new Map(parts.map((part) => [part.path, part]));
  const direct = [...Object.keys(manifest.dependencies), ...BUNDLED_DEVELOPMENT.map((path) => nameOf(path))];
  const own = direct.map((name) => found(byPath, "", name)).filter((ref) => ref !== undefined);
  const dependencies = [
    { ref: root["bom-ref"], dependsOn: sorted([...own, ...[...nodes, ...packages].map(refOf)]) },
    ...unique(
      parts.map(({ path, ref, locked }) => ({
        "bom-ref": ref,
        dependsOn: sorted(
          Object.keys({ ...locked.dependencies, ...locked.optionalDependencies })
            .map((name) => found(byPath, path, name))
            .filter((each) => each !== undefined),
        ),
      })),
    ).map(({ "bom-ref": ref, dependsOn }) => ({ ref, dependsOn })),
  ];
  const bill = {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: {
      timestamp: new Date(epoch * 1000).toISOString(),
      lifecycles: [{ phase: "build" }],
      component: root,
    },
    components,
    dependencies,
  };
  // The same parts have the same number.
  return { ...bill, serialNumber: `urn:uuid:${uuidOf(JSON.stringify(bill))}` };
}

/** @param {string} file @returns {Record<string, Locked>} */
function lockedIn(file) {
  return JSON.parse(readFileSync(file, "utf8")).packages;
}

/** As scripts/stage.mjs and npm install them: what is optional and names no platform needs a compiler, and is left out. @param {string} path @param {Locked} locked */
function isContained(path, { dev, optional, os, cpu }) {
  if (BUNDLED_DEVELOPMENT.includes(path)) return true;
  if (dev === true || /(?:^|\/)@types\//.test(path)) return false;
  if (optional !== true) return true;
  return (
    os !== undefined && [os].flat().includes("linux") && [cpu ?? []].flat().some((each) => /^(?:x64|arm64)$/.test(each))
  );
}

/** @param {string} path @param {Locked} locked @returns {Part} */
function partOf(path, locked) {
  const name = locked.name ?? nameOf(path);
  return { path, ref: `pkg:npm/${name.replace(/^@/, "%40")}@${locked.version}`, locked };
}

/** @param {string} path */
function nameOf(path) {
  return path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
}

/** Where Node would find a package: next to the one that requires it, or further up. @param {Map<string, Part>} byPath @param {string} path @param {string} name */
function found(byPath, path, name) {
  for (let at = path; ; at = at.slice(0, Math.max(0, at.lastIndexOf("/node_modules/")))) {
    const part = byPath.get(`${at === "" ? "" : `${at}/`}node_modules/${name}`);
    if (part !== undefined || at === "") return part?.ref;
  }
}

/** @param {Part} part @param {string} where */
function npmComponent({ path, ref, locked }, where) {
  const full = locked.name ?? nameOf(path);
  const [scope, name] = full.startsWith("@") ? full.split("/") : [undefined, full];
  const [algorithm, encoded] = (locked.integrity ?? "").split("-");
  return {
    "bom-ref": ref,
    type: "library",
    ...(scope === undefined ? {} : { group: scope }),
    name: name ?? full,
    version: locked.version,
    ...(algorithm === "sha512" && encoded !== undefined
      ? { hashes: [{ alg: "SHA-512", content: Buffer.from(encoded, "base64").toString("hex") }] }
      : {}),
    ...(locked.license === undefined ? {} : { licenses: licensesOf(locked.license) }),
    purl: ref,
    // Scanners look up Node's vulnerabilities by this name.
    ...(full.startsWith("node-linux-") ? { cpe: `cpe:2.3:a:nodejs:node.js:${locked.version}:*:*:*:*:*:*:*` } : {}),
    properties: [{ name: "dns11:contained-in", value: where }],
  };
}

function debianPackages() {
  const lines = readFileSync("scripts/release/base.lock", "utf8").trim().split("\n");
  return lines.map((line) => {
    const [, hash = "", name = "", version = "", arch = ""] = DEB.exec(line) ?? [];
    if (name === "") throw new Error(`base.lock: "${line}" is not "HASH  NAME_VERSION_ARCH.deb"`);
    const full = version.replace("%3a", ":");
    const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(full)}?arch=${arch}&distro=trixie`;
    return {
      "bom-ref": purl,
      type: "library",
      name,
      version: full,
      hashes: [{ alg: "SHA-256", content: hash }],
      purl,
      properties: [{ name: "dns11:contained-in", value: "image" }],
    };
  });
}

/** An SPDX identifier or an expression of them. @param {string} license */
function licensesOf(license) {
  return [/[ ()]/.test(license) ? { expression: license } : { license: { id: license } }];
}

/** @template {{ "bom-ref": string }} T @param {readonly T[]} items */
function unique(items) {
  return [...new Map(items.map((item) => [item["bom-ref"], item])).values()].toSorted((a, b) =>
    a["bom-ref"] < b["bom-ref"] ? -1 : 1,
  );
}

/** @param {readonly string[]} refs */
function sorted(refs) {
  return [...new Set(refs)].toSorted();
}

/** @param {{ ref?: string, "bom-ref"?: string }} part */
function refOf(part) {
  return part.ref ?? part["bom-ref"] ?? "";
}

/** Of version 5, from a text. @param {string} text */
function uuidOf(text) {
  const hex = createHash("sha1").update(text).digest("hex");
  const variant = ((Number.parseInt(hex.slice(16, 18), 16) & 0x3f) | 0x80).toString(16);
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `5${hex.slice(13, 16)}`,
    variant + hex.slice(18, 20),
    hex.slice(20, 32),
  ].join("-");
}
