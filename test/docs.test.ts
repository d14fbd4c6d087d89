/**
 * What the documents say is what the program does: commands, flags, keys, codes, routes, messages, links and examples, both ways.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, normalize, relative } from "node:path";
import { test } from "node:test";

import { EXIT } from "../cmd/process/exit-code.ts";
import { LIMITS } from "../src/base/limits.ts";
import { DEFAULT_BEHAVIOUR, DEFAULT_FORWARDING, STRICT_BEHAVIOUR } from "../src/base/model/behaviour.ts";
import { loadChecks } from "../src/features/load.ts";
import { FAILURE_CODES, NOT_ASKED, SKIP_CODES } from "../src/base/model/finding.ts";
import { QUERY_RESULTS } from "../src/base/model/query-record.ts";
import type { SettingOrigins } from "../src/base/model/setting-origins.ts";
import { variableOf } from "../src/config/setting.ts";
import { readSettingsFile } from "../src/config/file/settings-file.ts";
import { mergeSettings } from "../src/config/merge-settings.ts";
import type { ControlPorts } from "../src/control/situation/ports.ts";
import { routesOf } from "../src/control/routes/routes.ts";
import { helpOfAll } from "./support/program/command-help.ts";

const README_LINES_MAX = 150;
/** Between the head of a table and its rows. */
const SEPARATOR = /^\|[ |:-]*-[ |:-]*$/;
const paths = [
  "README.md",
  "ARCHITECTURE.md",
  "SECURITY.md",
  "CONTRIBUTING.md",
  "CHANGELOG.md",
  ...readdirSync("docs", { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .toSorted()
    .map((name) => join("docs", name)),
];
const texts = new Map(paths.map((path) => [path, readFileSync(path, "utf8")]));
/** The changelog speaks of the past. */
const current = new Map([...texts].filter(([path]) => path !== "CHANGELOG.md"));
const all = [...current.values()].join("\n");

function page(name: string): string {
  return texts.get(name) ?? assert.fail(`there is no ${name}`);
}

test("what scripts write into the documents is up to date", () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, ["scripts/docs.mjs", "--check"], { encoding: "utf8" });
  assert.equal(status, 0, stdout + stderr);
});

test("README is short, and its output is that of a run", () => {
  assert.ok(page("README.md").split("\n").length <= README_LINES_MAX);
  for (const [path, text] of current) {
    for (const [region, name = ""] of text.matchAll(/<!-- captured: ([a-z-]+) -->[\s\S]*?<!-- end/g)) {
      assert.ok(region.split("\n").length > 8, `${path}: nothing was captured for ${name}`);
      assert.doesNotMatch(region, /\/tmp\//, `${path}: ${name} shows a path of the machine where it was captured`);
    }
  }
});

test("every flag that a document names belongs to a command, and every command is documented", () => {
  const cli = page("docs/cli.md");
  // Those of programs that the documents mention.
  const others = new Set([
    "bridge-accept-fwmark",
    "dns-option",
    "firewall-backend",
    "kill-who",
    "signal",
    "now",
    "ignore-scripts",
    "pid",
    "rm",
    "unix-socket",
    "link",
    "user",
    "zone",
    "noflush",
    "net",
    "context",
    "device-cgroup-rule",
    "restart",
    "pid",
    "config",
    "add-host",
    "cap-add",
    "runtime",
    "alias",
    "driver",
    "driver-opt",
    "label",
    "force-recreate",
    "expose",
    "check",
    "no",
    "preserve-credentials",
    "detach-netns",
    // Of Caddy, and of curl.
    "adapter",
    "cacert",
    // Of iptables.
    "dport",
    "match-set",
    // Of kubectl.
    "verb",
    "resource",
    "clusterrole",
    "serviceaccount",
    "duration",
    // Of install.sh, and of programs around a release.
    "method",
    "url",
    "remove",
    "purge",
    "version",
    "repo",
    "ignore-missing",
    "update",
    "input",
    "detach",
    "wait",
    "no-git-tag-version",
    "privileged",
    "device",
    "context",
    "device-cgroup-rule",
    "restart",
    "pid",
  ]);
  for (const [path, text] of current) {
    // Messages of the program may name flags of docker.
    const written = text.replaceAll(
      /<!-- generated: (?:breakages|errors|log-errors|log-warnings) -->[\s\S]*?<!-- end/g,
      "",
    );
    for (const [, no, flag = ""] of written.matchAll(/(?<![\w-])--(no-)?([a-z][a-z0-9-]*)/g)) {
      if (others.has(flag) || others.has(`${no ?? ""}${flag}`)) continue;
      assert.match(cli, new RegExp(`--(no-)?${flag}\\b`), `${path}: --${no ?? ""}${flag}`);
    }
  }
});

test("every dns11 command line in a document is one that the program understands", async () => {
  assert.ok(commandLines().length > 60);
  const flagsOf = new Map((await helpOfAll()).map(({ path, flags }) => [path.join(" "), flags]));
  for (const [path, line] of commandLines()) {
    const words = line
      .replace(/^sudo /, "")
      .split(/\s+/)
      .slice(1);
    const command = words
      .slice(0, ["kind", "cache", "policy"].includes(words[0] ?? "") ? 2 : 1)
      .filter((word) => /^[a-z]/.test(word));
    const flags = flagsOf.get(command.join(" "));
    assert.ok(flags !== undefined, `${path}: ${line}: dns11 ${command.join(" ")} is no command`);
    // What is behind "--" is another program's.
    const own = words.slice(0, words.includes("--") ? words.indexOf("--") : words.length);
    for (const flag of own.filter((word) => word.startsWith("--")).map((word) => word.replace(/=.*/, ""))) {
      assert.ok(flags.includes(flag), `${path}: ${line}: ${flag}`);
    }
  }
});

/** Each line of a block that begins with the program, also after a prompt, and each piece of code in running text. */
function commandLines(): [string, string][] {
  return [...current].flatMap(([path, text]) => {
    const blocks = [...text.matchAll(/```(?:sh|text)\n([\s\S]*?)```/g)].map(([, block = ""]) => block);
    const lines = blocks
      .flatMap((block) => block.split("\n"))
      .map((line) => line.replace(/^\$ /, "").replace(/\s+#.*$/, ""));
    const spans = [...text.replaceAll(/```[\s\S]*?```/g, "").matchAll(/`([^`\n]+)`/g)].map(([, span = ""]) => span);
    return [...lines, ...spans]
      .filter((line) => /^(?:sudo )?dns11 (?!-|man\b)[a-z]/.test(line) && !/[|<(\\]/.test(line))
      .map((line): [string, string] => [path, line]);
  });
}

test("make walk runs every command of README, but for the long tests", () => {
  const walk = readFileSync("scripts/walk.sh", "utf8");
  const [, walked = ""] = /README_COMMANDS=\(\n(.*?)\n\)/s.exec(walk) ?? [];
  const blocks = [...page("README.md").matchAll(/```sh\n(.*?)```/gs)].map(([, text = ""]) => text);
  const lines = [
    ...blocks.join("").matchAll(/^[^#\n]+/gm),
    ...page("README.md").matchAll(/(?<=`)sudo make \S+?(?=`)/g),
  ];
  const commands = lines.flatMap(([line]) => line.trim().split(/ && /));
  assert.ok(commands.length > 6);
  // It begins in a clone, and tests take more than a walk.
  const others = /^(?:git clone |cd |sudo make test$)/;
  const bare = (command: string): string => command.replace(/^sudo /, "").replace(/^apt /, "apt-get -qq -y ");
  assert.deepEqual(
    commands.filter((command) => !others.test(command) && !walked.includes(bare(command))),
    [],
  );
});

test("every make target in a document exists", () => {
  const { stdout } = spawnSync("make", ["--no-print-directory", "help"], { encoding: "utf8" });
  const named = [...all.matchAll(/`(?:sudo )?make ([a-z-]+)/g), ...all.matchAll(/^sudo make ([a-z-]+)/gm)];
  assert.ok(named.length > 5);
  for (const [, target] of named) assert.match(`${stdout}  make help `, new RegExp(`make ${target} `));
});

test("every row belongs to a table, and has as many cells as its head", () => {
  for (const [path, text] of texts) {
    const lines = text.replaceAll(/```[\s\S]*?```/g, "").split("\n");
    for (const [at, line] of lines.entries()) {
      const isFirst = line.startsWith("|") && !(lines[at - 1] ?? "").startsWith("|");
      if (isFirst) assert.match(lines[at + 1] ?? "", SEPARATOR, `${path}: a row without a table: ${line}`);
      if (!SEPARATOR.test(line)) continue;
      const head = lines[at - 1] ?? "";
      const rows = lines.slice(at, lines.indexOf("", at));
      for (const row of rows) assert.equal(cellsOf(row), cellsOf(head), `${path}: ${row}`);
    }
  }
});

function cellsOf(row: string): number {
  return row.replaceAll("\\|", "").split("|").length;
}

test("every part of the bench that a document names exists", () => {
  const ofFeatures = readdirSync("test/features", { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith("/bench.ts"))
    .map((name) => join("test/features", name));
  const sources = ["test/bench/main.ts", "test/bench/data-plane.ts", ...ofFeatures]
    .map((name) => readFileSync(name, "utf8"))
    .join("\n");
  const named = [...all.matchAll(/\bmake bench ONLY=([a-z-]+)/g)].map(([, part = ""]) => part);
  assert.ok(named.length > 10);
  for (const part of named) assert.ok(sources.includes(`"${part}"`), part);
});

test("every key and variable that a document names is a setting", () => {
  const keys = Object.keys(mergeSettings([]).origins);
  const maps = new Set(keys.filter((key) => key.includes(".")).map((key) => key.split(".")[0] ?? ""));
  const variables = new Set(keys.map((key) => variableOf(key)));
  const configuration = page("docs/configuration.md");
  for (const key of keys) assert.ok(configuration.includes(`\`${key}\``), key);
  for (const [path, text] of current) {
    for (const [, key = ""] of text.matchAll(/`((?:[a-z-]+)\.[a-z-]+)[:`]/g)) {
      if (maps.has(key.split(".")[0] ?? "")) assert.ok(keys.includes(key), `${path}: ${key}`);
    }
    for (const [variable] of text.matchAll(/\bDNS11_[A-Z_]+\b/g)) {
      if (["DNS11_CONFIG", "DNS11_STATE_DIR"].includes(variable) || variable.startsWith("DNS11_TEST_")) continue;
      assert.ok(variables.has(variable), `${path}: ${variable}`);
    }
  }
});

test("the settings files of the documents are valid, and the example of the program is all defaults", async () => {
  const blocks = [...page("docs/configuration.md").matchAll(/```yaml\n([\s\S]*?)\n```/g)].map(([, text = ""]) => text);
  assert.equal(blocks.length, 1);
  const { stdout: example } = spawnSync(process.execPath, ["dist/cmd/dns11.js", "man", "dns11.yaml"], {
    encoding: "utf8",
  });
  for (const block of [...blocks, example]) await checked(block);
  const declared = [...page("docs/records.md").matchAll(/```yaml\n([\s\S]*?)\n```/g)].map(([, text = ""]) => text);
  assert.equal(declared.length, 1);
  for (const block of declared) await checked(`version: 1\n${block}`);
  // A key without a default has nothing behind its colon.
  const filled = example
    .replaceAll(/^#( *[a-z0-9-]+:)/gm, "$1")
    .replaceAll(/^ *[a-z-]+: #.*\n/gm, (line) =>
      /^(?:networks|resolv-conf|builds|dnstap|(?:records|dnsmasq|kube-dns)-dir| +(?:api|context|ca|tls-ca|user|password-file|machine))/.test(
        line,
      )
        ? ""
        : line,
    );
  const settings = await checked(filled);
  for (const [key, { value }] of Object.entries(mergeSettings([]).origins))
    assert.deepEqual(settings[key]?.value, value, key);
});

test("every setting in running text is valid", async () => {
  const found = [...current].flatMap(([path, text]) =>
    [...text.matchAll(/`([a-z-]+: (?:\{[^`]+\}|\[[^`]+\]))`/g)].map(([, setting = ""]) => [path, setting] as const),
  );
  assert.ok(found.length > 20);
  for (const [path, setting] of found) {
    if (/\.\.\.|\bN\b|NAME/.test(setting)) continue;
    if (setting.startsWith("state:")) continue;
    await checked(`version: 1\n${setting}\n`, path);
  }
});

test("what is offered for each line of dnsmasq's is there", () => {
  const rows = [
    ...page("docs/forwarding.md").matchAll(/^\| `([a-z-]+)[^|]*\| `((?:dns|cache|forward): [^`]+)` +\|$/gm),
  ];
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
});

// The settings that a file comes to, by key.
async function checked(text: string, path = ""): Promise<SettingOrigins> {
  const folder = mkdtempSync(join(tmpdir(), "d11-docs-"));
  try {
    const file = join(folder, "settings.yaml");
    writeFileSync(file, text);
    return mergeSettings([await readSettingsFile(file)]).origins;
  } catch (error) {
    return assert.fail(`${path}: ${text}: ${(error as Error).message}`);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("every label that dns11 reads has its row, and there is no other", () => {
  const rows = [...page("docs/labels.md").matchAll(/^\| `(io\.dns11\.[a-z-]+)`/gm)].map(([, label = ""]) => label);
  const read = readdirSync("src", { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .flatMap((name) => [...readFileSync(join("src", name), "utf8").matchAll(/"(io\.dns11\.[a-z-]+)"/g)])
    .map(([, label = ""]) => label);
  assert.ok(read.length > 10);
  assert.deepEqual(rows.toSorted(), read.toSorted());
  for (const [path, text] of current) {
    for (const [, label = ""] of text.matchAll(/\b(io\.dns11\.[a-z-]+)/g)) {
      assert.ok(read.includes(label), `${path}: ${label}`);
    }
  }
});

/** The rows of what features add, which strict mode is without. */
const ADDED = ["Names of --add-host", "Names of projects (`project-names`)", "Wildcards and extra names"];

test("the tables of differences have a row for every one", () => {
  const differences = page("docs/differences.md");
  const rowsIn = (title: string): number =>
    [...section("docs/differences.md", title).matchAll(/^\| [A-Z]/gm)].length - 1;
  assert.equal(rowsIn("Forwarding"), Object.keys(DEFAULT_FORWARDING).length);
  const ownRows = Object.keys(DEFAULT_BEHAVIOUR).length;
  assert.equal(rowsIn("Names") + rowsIn("Forwarding"), ownRows + ADDED.length);
  for (const row of ADDED) assert.ok(section("docs/differences.md", "Names").includes(`| ${row} `), row);
  assert.match(differences, new RegExp(`a TTL of ${DEFAULT_BEHAVIOUR.ttlSeconds} seconds`));
  assert.match(differences, new RegExp(`\\| ${STRICT_BEHAVIOUR.ttlSeconds} seconds +\\|`));
});

test("every exit code has its row, and there is no other", () => {
  const [, behind = ""] = page("docs/cli.md").split("<!-- generated: exit-codes -->");
  const codes = [...(behind.split("<!-- end")[0] ?? "").matchAll(/^\| (\d) +\|/gm)].map(([, code]) => Number(code));
  assert.deepEqual(codes, Object.values(EXIT));
});

test("every check of the doctor has its line, and there is no other", async () => {
  const checks = section("docs/codes.md", "Doctor checks");
  const rows = [...checks.matchAll(/^- \*\*(.+?)\*\* \(`([\w-]+)`\): /gm)].map(([, title, code = ""]) => [code, title]);
  const titles = Object.entries(await loadChecks()).map(([code, { title }]) => [code, title]);
  assert.deepEqual(Object.fromEntries(rows), Object.fromEntries(titles));
});

test("every code that status can report has its row, and there is no other", () => {
  const states = section("docs/codes.md", "Container states");
  const codes = new Set([...states.matchAll(/`([A-Z_]{4,}|[a-z]+(?:-[a-z]+)+)`/g)].map(([, code]) => code));
  assert.deepEqual(
    codes,
    new Set<string | undefined>([...SKIP_CODES.filter((code) => code.includes("-")), NOT_ASKED, ...FAILURE_CODES]),
  );
  for (const state of ["attached", "verifying", "opening", "failed", "skipped", "quarantined"]) {
    assert.match(states, new RegExp(`^\\| \`${state}\``, "m"));
  }
});

test("every result of a query is explained", () => {
  for (const result of QUERY_RESULTS) {
    assert.match(page("docs/tour.md"), new RegExp(`^\\| \`${result}\``, "m"));
    assert.match(page("docs/api.md"), new RegExp(`\`${result}\``));
  }
});

test("every warning and error of the log is explained", () => {
  const lines = page("docs/log-messages.md")
    .split("\n")
    .filter((line) => line.startsWith("- **"));
  assert.ok(lines.length > 20);
  assert.deepEqual(
    lines.filter((line) => !/^- \*\*.+\*\*.*: .*[a-z]{3}.*\.$/.test(line)),
    [],
  );
});

test("every error has its line", () => {
  // Where no text of the source does, what the document adds.
  const codes = [...section("docs/codes.md", "Errors of the command line").matchAll(/^- `([A-Z_]+)`: \S/gm)];
  assert.ok(codes.length > 100);
  assert.equal(new Set(codes.map(([, code]) => code)).size, codes.length, "one line for each code");
});

test("a page is read, not searched: none is longer than that of all commands by much", () => {
  const read = paths.filter((path) => !path.startsWith("docs/internals/") && path !== "CHANGELOG.md");
  const most = page("docs/cli.md").length * 1.25;
  assert.deepEqual(
    read.filter((path) => page(path).length > most),
    [],
  );
});

test("every route of the control socket has its row, and there is no other", () => {
  // They read none of their parts before a request arrives.
  const routes = [...Object.keys(routesOf({} as ControlPorts)), ...routesOfFeatures()];
  assert.ok(routes.includes("GET /v1/status"));
  const named = [...all.matchAll(/`((?:GET|POST) \/v1\/[\w/-]+)`/g)].map(([, route]) => route);
  assert.deepEqual(new Set(named), new Set(routes));
});

/** Those of a run that has begun: they are read in the source. */
function routesOfFeatures(): string[] {
  const files = readdirSync("src/features", { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".ts"),
  );
  const text = files.map((name) => readFileSync(join("src/features", name), "utf8")).join("");
  return [...text.matchAll(/"((?:GET|POST) \/v1\/[\w/-]+)":/g)].map(([, route = ""]) => route);
}

test("the fields of the API page exist", () => {
  const contracts = ["src/api", "src/base/model"].flatMap((folder) =>
    readdirSync(folder)
      .filter((name) => name.endsWith(".ts"))
      .map((name) => readFileSync(join(folder, name), "utf8")),
  );
  const rows = page("docs/api.md")
    .split("\n")
    .filter((line) => /^\| `(?:GET|POST) /.test(line));
  assert.ok(rows.length >= 9);
  for (const row of rows) {
    const [, , , response = ""] = row.split("|");
    for (const [, field = ""] of (/`\{([^}]+)\}`/.exec(response)?.[1] ?? "").matchAll(/(\w+)/g)) {
      assert.ok(
        contracts.some((text) => new RegExp(`readonly ${field}\\??:`).test(text)),
        `${row}: ${field}`,
      );
    }
  }
});

test("figures are those of the program", () => {
  const operations = page("docs/operations.md");
  assert.match(operations, new RegExp(`has not completed a round for ${LIMITS.hangSeconds} seconds`));
  assert.match(page("docs/differences.md"), new RegExp(`UDP queries up to ${LIMITS.udpQueryBytes} octets`));
});

test("README has the figures of the benchmarks, and says of a killed dns11 what the other pages say", () => {
  const readme = page("README.md");
  const benchmarks = page("docs/benchmarks.md");
  const cells = (row: string): string[] =>
    (new RegExp(`^\\| ${row} +\\| (.*) \\|$`, "m").exec(benchmarks)?.[1] ?? assert.fail(row))
      .split("|")
      .map((cell) => cell.trim());
  const [rate, , dockers] = cells("container name, queries a second");
  const [wait, , dockerWait] = cells("container name, one query at a time");
  const [memory = ""] = cells("a process with 40 containers");
  const [keeper = ""] = cells("the keeper");
  const rounded = (text: string): string => text.replace(/^[\d.]+/, (number) => String(Math.round(Number(number))));
  for (const figure of [rate, dockers, wait, dockerWait, rounded(memory), rounded(keeper)])
    assert.ok(figure !== undefined && readme.includes(figure), figure);
  const [, few = "", many = ""] =
    /^\| with a keeper .*after (\d+) ms +\|.*after (\d+) ms +\|$/m.exec(benchmarks) ?? assert.fail();
  for (const path of ["README.md", "docs/operations.md"]) {
    assert.match(page(path), new RegExp(`\\b${few} ms \\(40 containers\\)(?:,| to) ${many} ms \\(1,000\\)`), path);
  }
  for (const path of ["README.md", "SECURITY.md", "docs/operations.md", "docs/kind.md"]) {
    assert.match(page(path), /KIND(?:'s)?\s+(?:own rules|nodes)/, `${path} leaves out the exception of KIND`);
  }
});

test("the tables of the bench are of one run, and name its day, machine and versions", () => {
  const runs = [...all.matchAll(/<!-- measured: run -->\s+(.+)\s+<!-- end: run -->/g)].map(([, text = ""]) => text);
  assert.ok(runs.length > 1);
  assert.equal(new Set(runs).size, 1, runs.join("\n"));
  assert.match(runs[0] ?? "", /^\d{4}-\d{2}-\d{2}: \d+ cores of \S.*, Linux \d.*, Docker \d.*, Node \d.*\.$/);
});

test("links have a target, and those of shipped documents one that is shipped", () => {
  const shipped = (JSON.parse(readFileSync("package.json", "utf8")) as { files: string[] }).files;
  for (const [path, text] of texts) {
    for (const [, target = ""] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^https?:/.test(target)) continue;
      const [file = "", anchor] = target.split("#");
      const aim = file === "" ? path : normalize(join(dirname(path), file));
      assert.ok(existsSync(aim), `${path}: ${target}`);
      assert.ok(
        shipped.some((each) => aim === each || aim.startsWith(`${each}/`)),
        `${path}: ${target} is not shipped`,
      );
      if (anchor !== undefined) assert.ok(anchorsOf(readFileSync(aim, "utf8")).has(anchor), `${path}: ${target}`);
    }
  }
  for (const path of paths)
    assert.ok(
      shipped.some((each) => path === each || path.startsWith(`${each}/`)),
      path,
    );
});

test("an index leads to every page: README to docs/README.md, and that of a folder to all pages beside it", () => {
  assert.match(page("README.md"), /\(docs\/README\.md\)/);
  for (const path of paths.filter((each) => each.startsWith("docs/"))) {
    const isIndex = basename(path) === "README.md";
    const index = join(dirname(isIndex ? dirname(path) : path), "README.md");
    if (path === join("docs", "README.md")) continue;
    const link = relative(dirname(index), path);
    assert.ok(page(index).includes(`(${link})`), `${index} does not link ${path}`);
  }
});

/** As forges make them of headings. */
function anchorsOf(text: string): Set<string> {
  const headings = [...text.replaceAll(/```[\s\S]*?```/g, "").matchAll(/^#+ (.+)$/gm)];
  return new Set(
    headings.map(([, title = ""]) =>
      title
        .toLowerCase()
        .replaceAll(/[^\w\s-]/g, "")
        .replaceAll(/\s/g, "-"),
    ),
  );
}

test("the documents name folders, files and tests that exist", () => {
  const architecture = page("ARCHITECTURE.md");
  const folders = readdirSync("src", { recursive: true, encoding: "utf8" })
    .filter((path) => statSync(join("src", path)).isDirectory())
    .map((path) => path.split("/").at(-1) ?? "");
  for (const folder of folders) assert.ok(architecture.includes(`${folder}/`), `src/**/${folder}`);
  const named = [...all.matchAll(/`((?:src|cmd|test|scripts)\/[\w./-]+)`/g)].map(([, path = ""]) => path);
  assert.ok(named.length > 50);
  // The page about writing a feature makes one.
  const made = "src/features/asked/";
  for (const path of named) assert.ok(path.startsWith(made) || existsSync(path), path);
  const inBlocks = [...all.matchAll(/```sh\n([\s\S]*?)```/g)].flatMap(([, block = ""]) => [
    ...block.matchAll(/(?:^|[\s=])((?:scripts|docs|test)\/[\w./-]+)/gm),
  ]);
  for (const [, path = ""] of inBlocks) assert.ok(existsSync(path), path);
  // Files of the two sides, which the reading order names without their first folders.
  const inSides = [...architecture.matchAll(/`((?!src\/)(?:[a-z]+\/)?[a-z-]+\.ts)`/g)].map(([, path = ""]) => path);
  for (const path of inSides) {
    assert.ok(
      ["src/query", "src/container"].some((side) => existsSync(join(side, path))),
      path,
    );
  }
});

test("every runtime package has its reason", () => {
  const { dependencies } = JSON.parse(readFileSync("package.json", "utf8")) as { dependencies: Record<string, string> };
  for (const name of Object.keys(dependencies))
    assert.match(page("docs/internals/README.md"), new RegExp(`\\| \`${name}\` +\\|`));
});

test("the version of package.json is the newest of CHANGELOG or unreleased", () => {
  assert.match(page("CHANGELOG.md"), /^# Changelog\n\n## (Unreleased|\d+\.\d+\.\d+)/);
});

test("phrases that were private to this project are in no document", () => {
  const phrases = [
    /\b(?:RuleTier|RuleMeans|NftKeeper|IptablesKeeper|DOOR_MARK|QueryWay|ContainerWay|EngineWay|NodeWay|TellNews)\b/,
    /\b(?:whoever asked|is over, by|stands? in for|comes? home|laid bare|lays bare|leads? back to (?:whoever|us|a container))\b/i,
    /\b(?:asked? anew|made anew|started anew|whom it asks|what is kept of|told to stop|nobody may|how (?:it is|they are) held)\b/i,
  ];
  for (const [path, text] of current) {
    for (const pattern of phrases) assert.doesNotMatch(text, pattern, path);
  }
});

function section(path: string, title: string): string {
  const [, behind] = page(path).split(`\n## ${title}\n`);
  assert.ok(behind !== undefined, `${path} has no section ${title}`);
  return behind.split("\n## ")[0] ?? "";
}
