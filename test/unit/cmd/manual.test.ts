// Proves that the manual pages list every command, flag, variable, exit code and key and are valid roff; that the example
// settings file is valid and shows only defaults; and the output of version.

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { EXIT } from "../../../cmd/process/exit-code.ts";
import type { SettingOrigins } from "../../../src/base/model/setting-origins.ts";
import { mergeSettings } from "../../../src/config/merge-settings.ts";
import { check, run } from "../../support/program/command.ts";
import { helpOfAll, manualPage } from "../../support/program/command-help.ts";
import { dns11 } from "../../support/program/dns11.ts";

const folder = mkdtempSync(join(tmpdir(), "d11-manual-"));
after(() => rmSync(folder, { recursive: true }));

test("dns11(8) names every command with each of its flags", async () => {
  const shown = await text("dns11.8");
  const sections = shown.split(/^   (?=dns11 )/m);
  for (const { path, flags } of (await helpOfAll()).slice(1)) {
    const own = sections.find((section) => section.startsWith(`dns11 ${path.join(" ")}\n`));
    assert.ok(own, path.join(" "));
    for (const flag of flags) assert.ok(own.includes(flag), `${path.join(" ")} ${flag}`);
  }
});

test("dns11(8) names every variable and exit code", async () => {
  const shown = await text("dns11.8");
  const help = await text("commands.md");
  const variables = new Set(help.match(/DNS11_\w+/g));
  assert.ok(variables.size > 8);
  const section = shown.slice(shown.indexOf("ENVIRONMENT"), shown.indexOf("SIGNALS"));
  for (const variable of variables) assert.match(section, new RegExp(`^ +${variable}\\b`, "m"));
  const codes = [...shown.slice(shown.indexOf("EXIT STATUS")).matchAll(/^ +(\d) /gm)].map(([, code]) => Number(code));
  assert.deepEqual(codes, Object.values(EXIT));
});

test("dns11.yaml(5) names every key of the settings file, with its default", async () => {
  const shown = await text("dns11.yaml.5");
  const keys = Object.entries(mergeSettings([]).origins);
  assert.ok(keys.length > 40);
  for (const [key, { value }] of keys) {
    const start = shown.search(new RegExp(`^       ${key.replaceAll(".", "\\.")}(?: |$)`, "m"));
    assert.ok(start >= 0, key);
    const own = shown.slice(start).split(/\n\n/)[0]?.replaceAll(/\s+/g, " ") ?? "";
    assert.match(own, / Default: /, key);
    assert.doesNotMatch(own, /undefined|"\?"/, key);
    if (typeof value === "string") assert.ok(own.includes(`Default: ${value}`), key);
  }
});

for (const page of ["dns11.8", "dns11.yaml.5"]) {
  test(`${page} is valid roff`, async () => {
    const path = await file(page);
    const lint = await run("mandoc", ["-T", "lint", "-W", "style", path]);
    assert.deepEqual([lint.stdout, lint.code], ["", 0]);
    const groff = await run("groff", ["-man", "-ww", "-z", "-Tutf8", path]);
    assert.deepEqual([groff.stderr, groff.code], ["", 0]);
  });
}

test("the example settings file is valid and sets nothing; uncommented it sets the defaults", async () => {
  const path = await file("dns11.yaml");
  const example = await checked(path);
  assert.ok(Object.values(example).every(({ source }) => source === "default"));
  const lines = readFileSync(path, "utf8").split("\n");
  const uncommented = lines.map((line) => line.replace(/^#(?! )( *[a-z])/, "$1").replace(/^#(?= {2}[a-z])/, ""));
  // A key without a default has no value.
  writeFileSync(path, uncommented.filter((line) => !/: #/.test(line)).join("\n"));
  const effective = await checked(path);
  const defaults = mergeSettings([]).origins;
  assert.ok(Object.values(effective).filter(({ source }) => source === "file").length > 40);
  for (const [key, { value }] of Object.entries(defaults)) assert.deepEqual(effective[key]?.value, value, key);
});

test("version prints version, commit and platform", async () => {
  const { stdout } = await dns11(["version", "--json"]);
  const report = JSON.parse(stdout) as Record<string, string | null>;
  assert.equal(report["version"], (await dns11(["--version"])).stdout.trim());
  assert.equal(report["node"], process.versions.node);
  assert.equal(report["platform"], `${process.platform}/${process.arch}`);
  assert.match(report["libc"] ?? "", /^glibc \d/);
  const head = await run("git", ["rev-parse", "--short=12", "HEAD"]);
  if (head.code === 0) assert.match(report["commit"] ?? "", /^[0-9a-f]{12}(-changed)?$/);
  const shown = (await dns11(["version"])).stdout;
  // Outside of a checkout the commit is not known.
  for (const value of Object.values(report)) if (value !== null) assert.ok(shown.includes(value), value);
});

async function file(page: string): Promise<string> {
  const path = join(folder, page);
  if (!existsSync(path)) writeFileSync(path, await manualPage(page));
  return path;
}

// The page as man shows it.
async function text(page: string): Promise<string> {
  const shown = await check("mandoc", ["-T", "ascii", "-O", "width=200", await file(page)]);
  return shown.replaceAll(/.[\b]/g, "");
}

async function checked(path: string): Promise<SettingOrigins> {
  const { code, stdout, stderr } = await dns11(["check-config", "--json", path]);
  assert.equal(code, 0, stderr);
  return (JSON.parse(stdout) as { settings: SettingOrigins }).settings;
}
