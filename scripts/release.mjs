// @ts-check
/**
 * Release: all files that people download, made from a clean checkout: node scripts/release.mjs [FOLDER], by default
 * .cache/release/VERSION. The same commit makes the same bytes, on another day, in another folder and under another user.
 * RELEASE_CHANGED=1 allows a checkout with changes, for trying it.
 */
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { createHash } from "node:crypto";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

import { must, pack, sha256 } from "./release/archive.mjs";
import { writeImage } from "./release/image.mjs";
import { releaseNotes } from "./release/notes.mjs";
import { billOfMaterials } from "./release/sbom.mjs";

/** Architectures by Node's names, with Debian's. */
const ARCHS = /** @type {const} */ ({ x64: "amd64", arm64: "arm64" });
const PARTS = process.env["DNS11_CACHE"] ?? ".cache/release";
const IMAGE = "dns11";
const NPM_CI = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--prefer-offline"];

/** @typedef {keyof typeof ARCHS} Arch */

process.chdir(fileURLToPath(new URL("..", import.meta.url)));
// Modes of files are part of what is packed.
process.umask(0o022);
const manifest = JSON.parse(readFileSync("package.json", "utf8"));
const { version } = manifest;
const repository = manifest.repository.url.replace(/^git\+|\.git$/g, "");
const out = resolve(process.argv[2] ?? join(".cache/release", version));

try {
  main();
} catch (error) {
  console.error(`release: ${/** @type {Error} */ (error).message}`);
  process.exit(1);
}

/** What somebody else has in a folder stays. The default folder is always replaced. */
function mustBeReplaceable() {
  if (process.argv[2] === undefined || !existsSync(out)) return;
  const present = readdirSync(out);
  if (present.length > 0 && !present.includes("SHA256SUMS"))
    throw new Error(`"${out}" has other files than those of a release: name a new folder (OUT=FOLDER)`);
}

function main() {
  mustBeReplaceable();
  const revision = read("git", "rev-parse", "HEAD");
  if (read("git", "status", "--porcelain", "--untracked-files=no") !== "" && process.env["RELEASE_CHANGED"] !== "1") {
    throw new Error("the checkout has changes: commit them, or set RELEASE_CHANGED=1 to try a release of them");
  }
  const notes = releaseNotes(version, repository);
  const epoch = Number(process.env["SOURCE_DATE_EPOCH"] ?? read("git", "log", "-1", "--format=%ct"));
  Object.assign(process.env, { SOURCE_DATE_EPOCH: String(epoch), TZ: "UTC", LC_ALL: "C.UTF-8" });
  say(`building dns11 ${version} of ${revision.slice(0, 12)}`);
  must("npm", ["run", "--silent", "build"], { stdio: "inherit" });
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });

  packForNpm(epoch);
  for (const arch of /** @type {Arch[]} */ (Object.keys(ARCHS))) makeFor(arch, { revision, epoch });
  writeJson(`dns11-${version}.cdx.json`, billOfMaterials(epoch));
  writeFileSync(join(out, "release-notes.md"), notes);
  copyFileSync("scripts/install.sh", join(out, "install.sh"));
  chmodSync(join(out, "install.sh"), 0o755);
  const sums = readdirSync(out)
    .toSorted()
    .map((name) => `${sha256(join(out, name))}  ${name}\n`);
  writeFileSync(join(out, "SHA256SUMS"), sums.join(""));
  say(`done: ${out}`);
}

/** What npm would pack, but with permissions that do not depend on the checkout. @param {number} epoch */
function packForNpm(epoch) {
  const work = mkdtempSync(join(tmpdir(), "d11-release-"));
  try {
    const name = `dns11-${version}`;
    must("npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", work]);
    must("tar", ["-xzf", join(work, `${name}.tgz`), "-C", work]);
    must("chmod", ["-R", "u=rwX,go=rX", join(work, "package")]);
    pack(join(work, `${name}.tar.gz`), work, ["package"], epoch);
    copyFileSync(join(work, `${name}.tar.gz`), join(out, `${name}.tgz`));
    say(`${name}.tgz`);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** @param {Arch} arch @param {{ revision: string, epoch: number }} commit */
function makeFor(arch, { revision, epoch }) {
  const stage = {
    STAGE_ARCH: arch,
    STAGE_NODE: resolve(installed(arch, "scripts/release/node"), `node_modules/node-linux-${arch}/bin/node`),
    STAGE_PACKAGES: resolve(installed(arch, ".", "--omit=dev")),
  };
  const env = { ...process.env, ...stage };
  const debian = ARCHS[arch];
  const work = mkdtempSync(join(tmpdir(), "d11-release-"));
  try {
    must("scripts/deb.sh", [out], { env });
    say(`dns11_${version}_${debian}.deb`);

    const tree = join(work, "tree");
    must("scripts/tree.sh", [tree, "usr/local"], { env });
    const archive = `dns11-${version}-linux-${debian}.tar.gz`;
    pack(join(out, archive), tree, ["etc", "usr"], epoch);
    say(archive);

    const [base, program] = [join(work, "base"), join(work, "program")];
    must("scripts/release/base.sh", [debian, base], { env });
    must(process.execPath, ["scripts/stage.mjs", program], { env });
    rmSync(join(program, "usr/libexec"), { recursive: true });
    must("chmod", ["-R", "u=rwX,go=rX", program]);
    const image = `dns11-${version}-image-${debian}.tar`;
    writeImage({
      archive: join(out, image),
      layers: [base, program],
      arch: debian,
      name: IMAGE,
      version,
      source: repository,
      license: manifest.license,
      title: manifest.name,
      revision,
      epoch,
    });
    say(image);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/**
 * The packages of a lock file for an architecture, kept until the lock file changes. npm compares their hashes. @param {Arch} arch
 * @param {string} folder @param {readonly string[]} flags
 */
function installed(arch, folder, ...flags) {
  const lock = readFileSync(join(folder, "package-lock.json"));
  const hash = createHash("sha256").update(lock).update(flags.join(" ")).digest("hex").slice(0, 12);
  const place = join(PARTS, `packages-${arch}-${hash}`);
  if (existsSync(join(place, "complete"))) return place;
  rmSync(place, { recursive: true, force: true });
  mkdirSync(place, { recursive: true });
  for (const name of ["package.json", "package-lock.json"]) copyFileSync(join(folder, name), join(place, name));
  must("npm", [...NPM_CI, "--os=linux", `--cpu=${arch}`, "--libc=glibc", ...flags], { cwd: place });
  writeFileSync(join(place, "complete"), "");
  return place;
}

/** @param {string} command @param {string[]} args */
function read(command, ...args) {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} failed: ${stderr.trim()}`);
  return stdout.trim();
}

/** @param {string} name @param {unknown} value */
function writeJson(name, value) {
  writeFileSync(join(out, name), `${JSON.stringify(value, undefined, 2)}\n`);
  say(name);
}

/** @param {string} text */
function say(text) {
  console.log(`release: ${text}`);
}
