// @ts-check
/**
 * Installs dns11 into a folder as it is on a machine: /usr/lib/dns11 with the program, its packages and a Node, and the
 * commands that start it. The .deb, the archive and the image are made from it. None relies on the machine's Node, which may
 * be too old or may be updated. Usage: node scripts/stage.mjs FOLDER [PREFIX]
 *
 * PREFIX is `usr` unless given. By default it takes the Node that runs this script and the packages of the checkout, so the
 * result is for this machine's architecture. STAGE_ARCH (x64 or arm64), STAGE_NODE (a file) and STAGE_PACKAGES (a folder with
 * node_modules) choose others.
 */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const NODE_MAJOR_MIN = 20;
const SOURCE = dirname(dirname(fileURLToPath(import.meta.url)));
const { STAGE_ARCH: arch = process.arch, STAGE_NODE: ownNode, STAGE_PACKAGES: from = SOURCE } = process.env;

/** Files of packages that only building and reading them needs; licenses stay. */
const NOT_RUN = [
  /\.map$/,
  /\.d\.[cm]?ts$/,
  /\.ts$/,
  /\.(?:c|cc|cpp|h|hh|hpp|gyp|gypi)$/,
  // Only directly below a package: deeper down such a folder may be part of the program.
  /\/node_modules\/(?:@[^/]+\/)?[^/]+\/(?:src\/.+\.ts|vendor|test|tests|examples?|docs?|benchmarks?|\.github)$/,
  /\/(?:README|CHANGELOG|HISTORY|CONTRIBUTING|SECURITY)[^/]*\.md$/i,
];

/** @param {string} command @param {string[]} args */
function must(command, ...args) {
  const { status, error } = spawnSync(command, args, { cwd: SOURCE, stdio: ["ignore", "inherit", "inherit"] });
  if (status !== 0) fail(`${command} ${args.join(" ")} failed${error === undefined ? "" : `: ${error.message}`}`);
}

/** @param {string} text @returns {never} */
function fail(text) {
  console.error(`stage: ${text}`);
  process.exit(1);
}

/** The production packages of package-lock.json for the platform. */
function packages() {
  const lock = JSON.parse(readFileSync(join(SOURCE, "package-lock.json"), "utf8"));
  return (
    Object.entries(lock.packages)
      .filter(([path, { dev }]) => path !== "" && dev !== true)
      .filter(([path]) => !/\/@types\//.test(path))
      .filter(([, { os, cpu }]) => os?.includes(process.platform) !== false && cpu?.includes(arch) !== false)
      // An optional package that names no platform would need a compiler.
      .filter(([, { optional, os }]) => optional !== true || os !== undefined)
      .map(([path]) => {
        if (!existsSync(join(from, path))) fail(`${path} is missing in ${from}: npm ci`);
        return path;
      })
  );
}

/** @param {string} path */
function isRun(path) {
  return NOT_RUN.every((pattern) => !pattern.test(path));
}

/** The Node that runs this, if it works without the libraries of its distribution. */
function nodeOfScript() {
  if (Number(process.versions.node.split(".")[0]) < NODE_MAJOR_MIN) {
    fail(`Node ${process.versions.node} is too old to include: ${NODE_MAJOR_MIN} or later is required`);
  }
  const variables = /** @type {Record<string, unknown>} */ (process.config.variables);
  if (Object.keys(variables).some((name) => name.startsWith("node_shared") && variables[name] === true)) {
    fail(
      `${process.execPath} needs shared libraries of its distribution, which cannot be included; put a Node from nodejs.org first in PATH`,
    );
  }
  return process.execPath;
}

const [out, prefix = "usr"] = process.argv.slice(2);
if (out === undefined) fail("usage: node scripts/stage.mjs FOLDER [PREFIX]");
const node = ownNode ?? nodeOfScript();
if (!existsSync(join(SOURCE, "node_modules"))) must("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund");
if (!existsSync(join(SOURCE, "dist/man"))) must("npm", "run", "--silent", "build");

const installed = `${prefix}/lib/dns11`;
const home = join(out, installed);
rmSync(home, { recursive: true, force: true });
mkdirSync(join(home, "bin"), { recursive: true });
cpSync(node, join(home, "bin/node"), { dereference: true });
for (const path of ["package.json", "LICENSE", "dist/build.json", "dist/cmd", "dist/src", "dist/ui", ...packages()]) {
  const source = join(path.startsWith("node_modules/") ? from : SOURCE, path);
  // Nested packages are listed separately.
  const nested = join(source, "node_modules");
  cpSync(source, join(home, path), {
    recursive: true,
    dereference: true,
    filter: (file) => file !== nested && isRun(file),
  });
}
for (const [command, program] of [
  [`${prefix}/bin/dns11`, "dns11.js"],
  [`${prefix}/libexec/docker/cli-plugins/docker-dns`, "docker-dns.js"],
]) {
  const path = join(out, command ?? "");
  mkdirSync(dirname(path), { recursive: true });
  // Same process: a service manager keeps track of the one that it started.
  writeFileSync(path, `#!/bin/sh\nexec /${installed}/bin/node /${installed}/dist/cmd/${program} "$@"\n`, {
    mode: 0o755,
  });
}
