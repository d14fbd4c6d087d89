// Tests of the npm package: its content, that `npm i -g` into an empty prefix installs working commands and manual
// pages, and that `npm rm -g` leaves nothing.

import assert from "node:assert/strict";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { check, run } from "../support/program/command.ts";
import { createNetwork, runContainer } from "../support/engine/container.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";

const folder = mkdtempSync(join(tmpdir(), "d11-npm-"));
const prefix = join(folder, "prefix");
const manifest = JSON.parse(readFileSync("package.json", "utf8")) as { version: string; bin: Record<string, string> };
let engine: Engine;
let inPackage: readonly string[] = [];

before(async () => {
  engine = await startEngine({ suite: "bookworm" });
  await createNetwork(engine, "shop");
  await runContainer(engine, { name: "web", networks: ["shop"] });
});
after(async () => {
  await engine[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

test("the package contains the program and its documents, but no tests and no sources", async () => {
  // From a copy: packing builds, while other tests run the compiled files.
  const source = join(folder, "source");
  for (const path of ["package.json", "dist", "scripts", "docs", "README.md", "LICENSE"]) {
    cpSync(path, join(source, path), { recursive: true });
  }
  const [packed] = JSON.parse(
    await check("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", folder], { cwd: source }),
  ) as { filename: string; files: { path: string }[] }[];
  inPackage = packed?.files.map(({ path }) => path) ?? [];
  for (const path of [
    ...Object.values(manifest.bin),
    "dist/build.json",
    "dist/man/dns11.8",
    "dist/man/dns11.yaml.5",
    "dist/man/dns11.yaml",
    "scripts/systemd/dns11.service",
    "scripts/systemd/user/dns11.service",
    "scripts/image/compose.yaml",
    "README.md",
    "docs/install.md",
    "docs/img/demo.svg",
    "LICENSE",
  ]) {
    assert.ok(inPackage.includes(path), path);
  }
  assert.deepEqual(
    inPackage.filter((path) => /\.map$|^dist\/test|^test|\.tsbuildinfo$/.test(path) || /^(?:src|cmd)\//.test(path)),
    [],
  );
  // Every compiled file must be in the package, because the program imports it.
  const compiled = ["dist/cmd", "dist/src"].flatMap((path) =>
    readdirSync(path, { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".js"))
      .map((file) => join(path, file)),
  );
  for (const path of compiled) assert.ok(inPackage.includes(path), path);
});

test("npm i -g installs working commands and manual pages", async () => {
  mkdirSync(prefix);
  const archive = readdirSync(folder).find((name) => name.endsWith(".tgz")) ?? "";
  const args = [
    "install",
    "-g",
    "--prefix",
    prefix,
    // As documented: nothing of it is compiled.
    "--ignore-scripts",
    "--no-audit",
    "--no-fund",
    "--prefer-offline",
    join(folder, archive),
  ];
  const installed = await run("npm", args, { timeoutMs: 240_000 });
  assert.equal(installed.code, 0, installed.stderr);
  assert.equal((await inPrefix("dns11", "--version")).stdout, `${manifest.version}\n`);
  assert.match((await inPrefix("docker-dns", "docker-cli-plugin-metadata")).stdout, /"SchemaVersion":"0\.1\.0"/);
  for (const page of ["man8/dns11.8", "man5/dns11.yaml.5"])
    assert.ok(existsSync(join(prefix, "share/man", page)), page);
  // It is the installed program, with the packages installed with it.
  assert.ok(
    realpathSync(join(prefix, "bin/dns11")).startsWith(join(realpathSync(prefix), "lib/node_modules/dns11/dist/")),
  );
  const { code, stdout, stderr } = await inPrefix("dns11", "run", "--dry-run", "--json", "-H", engine.host);
  assert.equal(code, 0, stderr);
  const [web] = JSON.parse(stdout) as { name: string; networks: string[] }[];
  assert.deepEqual([web?.name, web?.networks], ["web", ["shop"]]);
});

test("npm rm -g leaves nothing", async () => {
  await check("npm", ["rm", "-g", "--prefix", prefix, "dns11"]);
  const left = readdirSync(prefix, { recursive: true, withFileTypes: true }).filter((entry) => !entry.isDirectory());
  assert.deepEqual(
    left.map(({ name }) => name),
    [],
  );
});

async function inPrefix(command: string, ...args: readonly string[]): ReturnType<typeof run> {
  return await run(join(prefix, "bin", command), args, { env: { DNS11_STATE_DIR: join(folder, "state") } });
}
