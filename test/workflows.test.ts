/**
 * Rules of the workflows, the action and the forms on GitHub, which cannot run here: they are valid, do no more than they may, take nothing
 * that can change under their name, and run commands that exist.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { parse } from "yaml";

type Step = {
  readonly name?: string;
  readonly uses?: string;
  readonly run?: string;
  readonly with?: Readonly<Record<string, unknown>>;
  readonly env?: Readonly<Record<string, string>>;
};
type Job = {
  readonly "runs-on": string;
  readonly "timeout-minutes": number;
  readonly needs?: string | readonly string[];
  readonly permissions?: Readonly<Record<string, string>>;
  readonly environment?: string;
  readonly container?: unknown;
  readonly strategy?: unknown;
  readonly steps: readonly Step[];
};
type Workflow = {
  readonly name: string;
  readonly on: Readonly<Record<string, unknown>>;
  readonly permissions: Readonly<Record<string, string>>;
  readonly concurrency?: unknown;
  readonly jobs: Readonly<Record<string, Job>>;
};

const FOLDER = ".github/workflows";
const workflows = new Map(readdirSync(FOLDER).map((name) => [name, read(join(FOLDER, name)) as Workflow]));
const jobs = [...workflows].flatMap(([file, workflow]) =>
  Object.entries(workflow.jobs).map(([name, job]) => ({ where: `${file}: ${name}`, workflow, job })),
);
const steps = jobs.flatMap(({ where, job }) => job.steps.map((step) => ({ where, step })));

function read(path: string): unknown {
  return parse(readFileSync(path, "utf8")) as unknown;
}

/** The text of a workflow has more than its value: comments name versions. */
function lines(file: string): string[] {
  return readFileSync(join(FOLDER, file), "utf8").split("\n");
}

function assertKeys(what: string, value: object, allowed: readonly string[]): void {
  for (const key of Object.keys(value)) assert.ok(allowed.includes(key), `${what}: unknown key ${key}`);
}

test("workflows have the keys that GitHub knows, and every job ends in time", () => {
  assert.deepEqual([...workflows.keys()].toSorted(), ["check.yml", "release.yml"]);
  for (const [file, workflow] of workflows) {
    assertKeys(file, workflow, ["name", "on", "permissions", "concurrency", "jobs"]);
    assertKeys(`${file}: on`, workflow.on, ["push", "pull_request"]);
  }
  for (const { where, workflow, job } of jobs) {
    const known = [
      "runs-on",
      "timeout-minutes",
      "needs",
      "permissions",
      "environment",
      "container",
      "strategy",
      "steps",
    ];
    assertKeys(where, job, known);
    assert.match(job["runs-on"], /^ubuntu-\d\d\.04$/, where);
    assert.ok(job["timeout-minutes"] > 0 && job["timeout-minutes"] <= 90, where);
    for (const name of [job.needs ?? []].flat()) assert.ok(name in workflow.jobs, `${where} needs ${name}`);
  }
  for (const { where, step } of steps) {
    assertKeys(where, step, ["name", "uses", "run", "with", "env"]);
    assert.equal(Number(step.uses !== undefined) + Number(step.run !== undefined), 1, where);
  }
});

test("a job may do what it needs, and only the release writes", () => {
  for (const [file, { permissions }] of workflows) {
    assert.ok(
      Object.entries(permissions).every(([what, level]) => what === "contents" && level === "read"),
      file,
    );
  }
  const writers = jobs.flatMap(({ where, job }) =>
    Object.entries(job.permissions ?? {})
      .filter(([, level]) => level !== "read")
      .map(([what, level]) => `${where}: ${what} ${level}`),
  );
  assert.deepEqual(writers, [
    "release.yml: attest: id-token write",
    "release.yml: attest: attestations write",
    "release.yml: draft: contents write",
    "release.yml: npm: id-token write",
    "release.yml: image: packages write",
  ]);
  // What runs code of packages, the build, can write nothing; what can write runs no code of this repository.
  for (const { where, job } of jobs) {
    const writes = Object.values(job.permissions ?? {}).includes("write");
    if (writes)
      assert.ok(
        !job.steps.some(({ uses, run }) => /actions\/checkout/.test(uses ?? "") || /\bmake\b|npm ci/.test(run ?? "")),
        where,
      );
  }
  // A pull request, also of a stranger, never starts a release.
  assert.deepEqual(workflows.get("release.yml")?.on, { push: { tags: ["v[0-9]+.[0-9]+.[0-9]+"] } });
  for (const [file, workflow] of workflows) assert.ok(!JSON.stringify(workflow).includes("secrets."), file);
});

test("actions are pinned to a commit, with its version in a comment", () => {
  const pins = new Map<string, string>();
  for (const file of workflows.keys()) {
    for (const line of lines(file).filter((each) => /\buses:/.test(each))) {
      const [, name = "", pin = ""] = /uses: (actions\/[\w-]+)@([0-9a-f]{40} # v\d+\.\d+\.\d+)$/.exec(line) ?? [];
      assert.notEqual(name, "", `${file}: ${line.trim()}`);
      assert.equal(pins.get(name) ?? pin, pin, `${name} has one version`);
      pins.set(name, pin);
    }
  }
  for (const { where, step } of steps) {
    if (!/actions\/checkout/.test(step.uses ?? "")) continue;
    assert.equal(
      step.with?.["persist-credentials"],
      false,
      `${where}: later steps must not find a token in the checkout`,
    );
  }
});

test("commands are valid shell, and names of branches and tags are never part of one", () => {
  for (const { where, step } of steps) {
    if (step.run === undefined) continue;
    assert.doesNotMatch(step.run, /\$\{\{/, `${where}: pass it by env`);
    const { status, stderr } = spawnSync("bash", ["-n"], { input: step.run, encoding: "utf8" });
    assert.equal(status, 0, `${where}: ${stderr}`);
    for (const variable of step.run.matchAll(/\$\{?([A-Z][A-Z_]+)\b/g)) {
      assert.ok(variable[1] !== undefined && variable[1] in (step.env ?? {}), `${where}: ${variable[1]} is not set`);
    }
  }
  const expressions = steps.flatMap(({ step }) =>
    [...JSON.stringify(step).matchAll(/\$\{\{ (.*?) \}\}/g)].map(([, each]) => each),
  );
  const github = ["ref_name", "token", "repository", "actor"].map((each) => `github.${each}`);
  const known = new Set([...github, "matrix.node", "vars.IMAGE_REGISTRY"]);
  for (const each of expressions) assert.ok(known.has(each ?? ""), each);
});

test("make targets and files that workflows name exist", () => {
  const { stdout } = spawnSync("make", ["--no-print-directory", "help"], { encoding: "utf8" });
  const named = steps.flatMap(({ where, step }) =>
    [...(step.run ?? "").matchAll(/\bmake ([a-z -]+)/g)].flatMap(([, targets = ""]) =>
      targets
        .trim()
        .split(" ")
        .map((target) => ({ where, target })),
    ),
  );
  assert.ok(named.length >= 5);
  for (const { where, target } of named) assert.match(stdout, new RegExp(`make ${target} `), where);
});

test("the release publishes what it has built and verified, and nothing else", () => {
  const release = workflows.get("release.yml")?.jobs ?? {};
  for (const name of ["draft", "npm", "image"]) {
    assert.equal(release[name]?.needs, "attest", name);
    assert.match(release[name]?.steps.at(-1)?.run ?? "", /^cd release\nsha256sum --quiet --check SHA256SUMS\n/, name);
  }
  for (const name of ["npm", "image"]) assert.equal(release[name]?.environment, "release", name);
  assert.match(JSON.stringify(release["npm"]), /npm publish --provenance/);
});

test("the action names its programs, and documents its inputs", () => {
  const folder = ".github/actions/dns11";
  const action = read(join(folder, "action.yml")) as {
    inputs: Record<string, { description: string; default: string }>;
    runs: { using: string; main: string; post: string; "post-if": string };
  };
  assertKeys("action.yml", action, ["name", "description", "author", "branding", "inputs", "runs"]);
  assert.deepEqual(action.runs, { using: "node24", main: "start.mjs", post: "report.mjs", "post-if": "always()" });
  for (const name of ["main.mjs", "start.mjs", "record.mjs", "report.mjs"])
    assert.ok(existsSync(join(folder, name)), name);
  const documented = [...readFileSync("docs/github-action.md", "utf8").matchAll(/^\| `([a-z-]+)` +\|/gm)].map(
    ([, name]) => name,
  );
  assert.deepEqual(documented, Object.keys(action.inputs));
  for (const [name, input] of Object.entries(action.inputs)) {
    assertKeys(name, input, ["description", "default"]);
    // The code reads it, by the variable that a runner sets.
    assert.ok(readFileSync("src/action/runner.ts", "utf8").includes(`read("${name.toUpperCase()}")`), name);
  }
});

test("forms for issues have the keys that GitHub knows, and a bug asks for the bundle", () => {
  const folder = ".github/ISSUE_TEMPLATE";
  const forms = readdirSync(folder).filter((name) => name !== "config.yml");
  assert.deepEqual(forms.toSorted(), ["bug.yml", "idea.yml"]);
  for (const name of forms) {
    const form = read(join(folder, name)) as { body: { type: string; id: string; attributes: { label: string } }[] };
    assertKeys(name, form, ["name", "description", "labels", "body"]);
    const ids = form.body.map(({ id }) => id);
    assert.equal(new Set(ids).size, ids.length, name);
    for (const field of form.body) {
      assertKeys(`${name}: ${field.id}`, field, ["type", "id", "attributes", "validations"]);
      assert.match(field.type, /^(?:textarea|input|checkboxes)$/);
      assert.ok(field.attributes.label.length > 0);
    }
  }
  assert.match(readFileSync(join(folder, "bug.yml"), "utf8"), /dns11 doctor --bundle/);
  const config = read(join(folder, "config.yml")) as { contact_links: { url: string }[] };
  const [first] = config.contact_links;
  assert.ok(readFileSync("SECURITY.md", "utf8").includes(`<${first?.url}>`));
});

test("dependency updates cover each lock file and the workflows", () => {
  const { updates } = read(".github/dependabot.yml") as {
    updates: { "package-ecosystem": string; directory?: string; directories?: string[] }[];
  };
  const of = (ecosystem: string): string[] =>
    updates
      .filter((each) => each["package-ecosystem"] === ecosystem)
      .flatMap((each) => each.directories ?? each.directory ?? []);
  assert.deepEqual(of("github-actions"), ["/"]);
  assert.deepEqual(of("npm"), ["/", "/scripts/release/node"]);
  for (const folder of of("npm")) assert.ok(existsSync(join(".", folder, "package-lock.json")), folder);
});

test("everything names the same repository", () => {
  const { repository } = JSON.parse(readFileSync("package.json", "utf8")) as { repository: { url: string } };
  const address = repository.url.replace(/^git\+|\.git$/g, "");
  const files = [
    "scripts/install.sh",
    "SECURITY.md",
    "CONTRIBUTING.md",
    "docs/install.md",
    ".github/ISSUE_TEMPLATE/config.yml",
  ];
  for (const file of files) {
    const named = [...readFileSync(file, "utf8").matchAll(/https:\/\/github\.com\/[\w-]+\/[\w-]+/g)].map(
      ([url]) => url,
    );
    assert.ok(named.length > 0, file);
    for (const url of named) assert.equal(url, address, file);
  }
});

test("systemctl kill is spelled as systemd of every release accepts it", () => {
  const texts = ["docs", "scripts"].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((name) => /\.(?:md|sh|mjs|service)$|\/(?:postinst|prerm|postrm)$/.test(name))
      .map((name) => readFileSync(join(folder, name), "utf8")),
  );
  const spellings = texts.flatMap((text) => [...text.matchAll(/--kill-whom?=/g)].map(([each]) => each));
  assert.ok(spellings.length >= 2);
  // From systemd 252 on the option is --kill-whom, and this one still works.
  assert.deepEqual([...new Set(spellings)], ["--kill-who="]);
});
