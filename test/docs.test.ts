/**
 * What the documents say is what the program does: help texts, exit codes, switches, states and targets, compared.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { EXIT } from "../cmd/exit-code.ts";
import { SWITCHES } from "../src/config/switches.ts";
import { LIMITS } from "../src/base/limits.ts";
import type { SettingOrigins } from "../src/base/model/setting-origins.ts";
import { mergeSettings } from "../src/config/merge-settings.ts";
import { DEFAULT_BEHAVIOUR, STRICT_BEHAVIOUR } from "../src/base/model/behaviour.ts";
import type { ControlPorts } from "../src/control/ports.ts";
import { routesOf } from "../src/control/routes.ts";
import { CHECKS } from "../src/base/model/finding.ts";
import { FAILURE_CODES, SKIP_CODES } from "../src/base/model/not-served.ts";

const PROGRAM = "dist/cmd/dns11.js";
const readme = readFileSync("README.md", "utf8");
const architecture = readFileSync("ARCHITECTURE.md", "utf8");
const security = readFileSync("SECURITY.md", "utf8");

test("README shows every help text as the program prints it", () => {
  const blocks = [...readme.matchAll(/```text (dns11 [^\n]*--help)\n([\s\S]*?)\n```/g)];
  assert.deepEqual(
    blocks.map(([, command]) => command),
    [
      "",
      "run ",
      "status ",
      "ps ",
      "lookup ",
      "explain ",
      "tail ",
      "top ",
      "upstreams ",
      "cache ",
      "reload ",
      "doctor ",
      "kind ",
      "check-config ",
      "cleanup ",
    ].map((command) => `dns11 ${command}--help`),
  );
  for (const [, command = "", shown] of blocks) {
    const { stdout } = spawnSync(process.execPath, ["dist/cmd/dns11.js", ...command.split(" ").slice(1)], {
      encoding: "utf8",
    });
    assert.equal(stdout.trimEnd(), shown, command);
  }
});

test("README lists every exit code, and no other", () => {
  const section = readme.slice(readme.indexOf("Exit codes:"), readme.indexOf("- **The engine"));
  const codes = [...section.matchAll(/^\| (\d) +\|/gm)].map(([, code]) => Number(code));
  assert.deepEqual(codes, Object.values(EXIT));
});

test("README names everything that the doctor looks at", () => {
  for (const code of Object.keys(CHECKS)) assert.match(readme, new RegExp(`^\\| \`${code}\` +\\|`, "m"));
});

test("README's table of differences has a row for every switch of the character", () => {
  const rows = [...readme.matchAll(/^\| `--(?:no-)?([a-z0-9-]+)/gm)].map(([, flag]) => flag);
  const help = spawnSync(process.execPath, ["dist/cmd/dns11.js", "run", "--help"], { encoding: "utf8" }).stdout;
  for (const flag of rows) assert.match(help, new RegExp(`--(no-)?${flag}`));
  assert.equal(rows.length, Object.keys(DEFAULT_BEHAVIOUR).length);
  assert.match(readme, new RegExp(`--ttl ${DEFAULT_BEHAVIOUR.ttlSeconds}\``));
  assert.match(readme, new RegExp(`\\| ${STRICT_BEHAVIOUR.ttlSeconds} seconds +\\|`));
});

test("README names every code that status can tell", () => {
  for (const code of [...SKIP_CODES, ...FAILURE_CODES]) assert.ok(readme.includes(`\`${code}\``), code);
});

test("the settings file of README is good, and every setting has its line in it", () => {
  const shown = /```yaml\n([\s\S]*?)\n```/.exec(readme)?.[1] ?? "";
  const settings = checked(shown);
  for (const key of Object.keys(settings).filter((name) => !name.startsWith("switches."))) {
    assert.match(shown, new RegExp(`^ *${key.split(".").at(-1) ?? ""}:`, "m"), key);
  }
  // What it shows is the default, but for a network's servers and the path that is the usual one.
  const others = new Set(["networks", "resolv-conf"]);
  for (const [key, { value }] of Object.entries(mergeSettings([]).origins)) {
    if (!others.has(key)) assert.deepEqual(settings[key]?.value, value, key);
  }
  for (const { name } of SWITCHES) assert.match(readme, new RegExp(`^\\| .--no-${name}. `, "m"), name);
});

test("what README offers for each line of dnsmasq's is good", () => {
  const rows = [...readme.matchAll(/^\| `([a-z-]+)[^|]*\| `((?:dns|leave|cache|forward|switches): [^`]+)` +\|$/gm)];
  for (const option of [
    "no-resolv",
    "no-negcache",
    "max-cache-ttl",
    "dns-forward-max",
    "strict-order",
    "all-servers",
  ]) {
    assert.ok(
      rows.some(([, name]) => name === option),
      option,
    );
  }
  for (const [, , setting = ""] of rows) checked(`version: 1\n${setting}\n`);
});

// The settings that a file comes to, by key.
function checked(text: string): SettingOrigins {
  const folder = mkdtempSync(join(tmpdir(), "d11-docs-"));
  try {
    const file = join(folder, "settings.yaml");
    writeFileSync(file, text);
    const { status, stdout, stderr } = spawnSync(process.execPath, [PROGRAM, "check-config", "--json", file], {
      encoding: "utf8",
    });
    assert.equal(status, 0, stderr + stdout);
    return (JSON.parse(stdout) as { settings: SettingOrigins }).settings;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("README names every route of the control socket, and no other", () => {
  // Nothing of what they need is looked at before they are asked.
  const routes = Object.keys(routesOf({} as ControlPorts));
  assert.ok(routes.includes("GET /v1/status"));
  const [, behind = ""] = readme.split("### The control socket\n");
  const [section = ""] = behind.split("\n## ", 1);
  const named = [...section.matchAll(/`((?:GET|POST) \/v1\/[\w/-]+)`/g)].map(([, route]) => route);
  assert.deepEqual(new Set(named), new Set(routes));
});

test("README's figures are those of the program", () => {
  assert.match(readme, new RegExp(`has not come round for ${LIMITS.hangSeconds} seconds`));
  assert.match(readme, new RegExp(`looked at, every ${LIMITS.verifyUnwatchedEveryMs / 1000} seconds`));
  assert.match(readme, new RegExp(`UDP queries up to ${LIMITS.udpQueryBytes} octets`));
});

test("SECURITY names tests that exist", () => {
  const named = [...security.matchAll(/`(test\/[\w./-]+)`/g)].map(([, path = ""]) => path);
  assert.ok(named.length > 5);
  for (const path of named) assert.ok(existsSync(path), path);
});

test("ARCHITECTURE names every folder of src, and only files that exist", () => {
  const folders = readdirSync("src", { recursive: true, encoding: "utf8" })
    .filter((path) => statSync(join("src", path)).isDirectory())
    .map((path) => path.split("/").at(-1) ?? "");
  for (const folder of folders) assert.ok(architecture.includes(`${folder}/`), `src/**/${folder}`);
  const named = [...architecture.matchAll(/`((?:src|cmd|test|scripts)\/[\w./-]+)`/g)].map(([, path = ""]) => path);
  assert.ok(named.length > 10);
  for (const path of named) assert.ok(existsSync(path), path);
});

test("every runtime package has its reason in ARCHITECTURE", () => {
  const { dependencies } = JSON.parse(readFileSync("package.json", "utf8")) as { dependencies: Record<string, string> };
  for (const name of Object.keys(dependencies)) assert.match(architecture, new RegExp(`\\| \`${name}\` +\\|`));
});

test("the version of package.json is the newest of CHANGELOG or unreleased", () => {
  const changelog = readFileSync("CHANGELOG.md", "utf8");
  assert.match(changelog, /^# Changelog\n\n## (Unreleased|\d+\.\d+\.\d+)/);
});

test("make help lists the targets that README and the gates name", () => {
  const { stdout } = spawnSync("make", ["--no-print-directory", "help"], { encoding: "utf8" });
  for (const target of ["run", "test", "check", "bench", "build", "help"])
    assert.match(stdout, new RegExp(`make ${target} `));
});
