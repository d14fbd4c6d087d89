// Proves shell completion: every command and flag of the help, the values of flags, and file names; and that bash, zsh and
// fish offer them.

import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";

import { createProgram } from "../../../cmd/program.ts";
import { complete } from "../../../cmd/shell/complete.ts";
import { check } from "../../support/program/command.ts";
import { type CommandHelp, helpOfAll } from "../../support/program/command-help.ts";
import { dns11 } from "../../support/program/dns11.ts";
import { shellOnTerminal } from "../../support/program/terminal.ts";

const folder = mkdtempSync(join(tmpdir(), "d11-completion-"));
after(() => rmSync(folder, { recursive: true }));
mkdirSync(join(folder, "bin"));
symlinkSync(resolve("dist/cmd/dns11.js"), join(folder, "bin/dns11"));
// No dns11 runs there, so there are no container names either.
const env = { DNS11_STATE_DIR: folder, TERM: "dumb", HOME: folder };
const NOTHING_RUNS = { containers: [], projects: [] };
const program = await createProgram("dns11");
const FINDING_DNS11 = ["-S", `PATH=${join(folder, "bin")}:\${PATH}`];

let all: readonly CommandHelp[] = [];
before(async () => void (all = await helpOfAll()));

test("every command and flag of the help is offered", async () => {
  assert.ok(all.length >= 10);
  for (const { path, flags } of all) {
    const offered = await offer(...path, "-");
    for (const flag of flags) assert.ok(offered.words.includes(flag), `${path.join(" ")} ${flag}`);
    const inner = all.filter(
      (each) => each.path.length === path.length + 1 && path.every((w, i) => each.path[i] === w),
    );
    if (inner.length === 0) continue;
    const commands = await offer(...path, "");
    for (const each of inner) assert.ok(commands.words.includes(each.path.at(-1) ?? ""), each.path.join(" "));
  }
});

const OFFERED: readonly (readonly [readonly string[], readonly string[], boolean])[] = [
  [["comp"], ["completion"], false],
  [["completion", ""], ["bash", "zsh", "fish"], false],
  [["completion", "f"], ["fish"], false],
  [["run", "--log-level", ""], ["debug", "info", "warn", "error", "silent"], false],
  [["run", "--log-level=in"], ["--log-level=info"], false],
  [["run", "--log-level", "=", "in"], ["info"], false],
  [["run", "--visible", "p"], ["project"], false],
  [["run", "--log-l"], ["--log-level"], false],
  [["run", "--config", ""], [], true],
  [["run", "--with", "--", "n"], [], true],
  [["check-config", ""], [], true],
  [["check-config", "file", ""], [], false],
  [["run", "--ttl", ""], [], false],
  [["cache", "fl"], ["flush"], false],
  [["cache", "flush", ""], [], false],
  [["help", "che"], ["check-config"], false],
  [["run", "--", "--log"], [], true],
  [["nothing", ""], [], false],
  [["run", "--nothing", "--dry"], ["--dry-run"], false],
];

for (const [words, expected, wantsFiles] of OFFERED) {
  test(`dns11 ${words.join(" ")}<tab>`, async () => {
    assert.deepEqual(await offer(...words), { words: expected, wantsFiles });
  });
}

test("hidden flags and commands are not offered", async () => {
  assert.ok(!(await offer("run", "--")).words.includes("--own-project"));
  assert.ok((await offer("")).words.every((word) => !word.startsWith("_")));
});

test("bash", async () => {
  const offered = await inBash([["stat"], ["run", "--log-level", "=", ""], ["status", ""]]);
  assert.deepEqual(offered, [["status"], ["debug", "info", "warn", "error", "silent"], []]);
});

test("fish", async () => {
  writeFileSync(join(folder, "settings.yaml"), "");
  const lines = ["dns11 run --log-level d", `dns11 check-config ${folder}/sett`, "dns11 statu"];
  const [levels, files, [command = ""] = []] = await inFish(lines);
  assert.deepEqual([levels, files], [["debug"], [`${folder}/settings.yaml`]]);
  assert.match(command, /^status\tShow the health of dns11/);
});

// A pseudo terminal in which the tab key is pressed.
const ZSH = `
zmodload zsh/zpty
zpty shell 'zsh -f -i'
zpty -w shell 'PS1=; unsetopt zle_bracketed_paste; autoload -U compinit; compinit -D -u; source <(dns11 completion zsh); echo rea""dy'
zpty -r shell output '*ready*'
zpty -w -n shell $'dns11 chec\\t'
zpty -r shell output '*check-config*' && print -r -- $output
zpty -w -n shell $'\\C-udns11 run --log-level deb\\t'
zpty -r shell output '*debug*' && print -r -- $output
zpty -d shell
`;

test("zsh", async () => {
  const output = await check("env", [...FINDING_DNS11, "zsh", "-f", "-c", ZSH], { env });
  assert.match(output, /dns11 check-config/);
  assert.match(output, /--log-level debug/);
});

/** What labels can claim. A shell that takes the first one as it is runs a command. */
const RAN = join(folder, "ran");
const SERVICES = [`zz;id>${RAN}`, "z$(id)", "z y", "z\u009b", "-z", "zebra"];

test("of services and projects, only plain names are offered by bash, zsh and fish", async () => {
  await using there = await daemonWith(SERVICES);
  const lines = [
    ["status", "z"],
    ["lookup", ""],
    ["ps", "-p", ""],
  ];
  const offered = lines.map(() => ["zebra"]);
  assert.deepEqual(await inBash(lines, there.env), offered);
  const typed = lines.map((words) => `dns11 ${words.join(" ")}`);
  assert.deepEqual(await inFish(typed, there.env), offered);
  const script = ZSH.replace("chec\\t", "status z\\t").replace("*check-config*", "*status zebra*");
  const output = await check("env", [...FINDING_DNS11, "zsh", "-f", "-c", script], { env: there.env });
  assert.match(output, /dns11 status zebra/);
  await typedInBash("dns11 status zz\t", "dns11", there.env);
  assert.equal(existsSync(RAN), false);
});

test("bash inserts what the program offers as one word", async () => {
  const other = join(folder, "other");
  writeFileSync(other, `#!/bin/sh\nprintf '%s\\n' 'zz;id>${RAN}' :4\n`, { mode: 0o755 });
  await typedInBash(`${other} status z\t`, other, env);
  assert.equal(existsSync(RAN), false);
});

test("an unknown shell is rejected with a list of the supported ones", async () => {
  const { code, stderr } = await dns11(["completion", "csh"]);
  assert.equal(code, 2);
  assert.match(stderr, /bash, zsh, fish/);
});

/** What is offered for the last word of each line. */
async function inBash(lines: readonly (readonly string[])[], shellEnv: NodeJS.ProcessEnv = env): Promise<string[][]> {
  const each = lines.map((words) => {
    const typed = `COMP_WORDS=(dns11 ${words.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${words.length}`;
    return `${typed}; _dns11 dns11; printf '%s\\n' "\${COMPREPLY[@]}"`;
  });
  return await inShell(["bash", "-uc"], "source <(dns11 completion bash)", each, shellEnv);
}

async function inFish(lines: readonly string[], shellEnv: NodeJS.ProcessEnv = env): Promise<string[][]> {
  const each = lines.map((line) => `complete -C '${line}'`);
  return await inShell(["fish", "--no-config", "-c"], "dns11 completion fish | source", each, shellEnv);
}

async function inShell(
  shell: readonly string[],
  prepare: string,
  each: readonly string[],
  shellEnv: NodeJS.ProcessEnv,
): Promise<string[][]> {
  const script = [prepare, ...each].join("; echo next; ");
  const output = await check("env", [...FINDING_DNS11, ...shell, script], { env: shellEnv });
  const [, ...answers] = output.split("next\n");
  return answers.map((text) => text.split("\n").filter(Boolean));
}

/** Types a line in a bash of a person, which completes words for a program, and runs the line. */
async function typedInBash(line: string, completed: string, shellEnv: NodeJS.ProcessEnv): Promise<void> {
  const prepare = `dns11() { '${folder}/bin/dns11' "$@"; }; source <(dns11 completion bash); complete -F _dns11 '${completed}'`;
  await shellOnTerminal("PS1='typed> ' exec bash --norc --noprofile -i", {
    env: shellEnv,
    keys: [
      { when: /typed> /, press: `${prepare}; echo rea''dy\n` },
      { when: /ready\r\n.*typed> /s, press: `${line}\n` },
      { when: /\n.*typed> /s, press: "exit\n" },
    ],
  });
}

/** A daemon whose containers are in services and projects of these names. */
async function daemonWith(services: readonly string[]): Promise<AsyncDisposable & { readonly env: NodeJS.ProcessEnv }> {
  const engine = { address: join(folder, "engine.sock") };
  const containers = services.map((service) => ({ name: "zebra", project: service, service }));
  const stateDir = join(folder, "run");
  mkdirSync(join(stateDir, "one"), { recursive: true });
  const server = createServer((_, response) => response.end(JSON.stringify({ engine, containers })));
  server.listen(join(stateDir, "one/control.sock"));
  await once(server, "listening");
  return {
    env: { ...env, DNS11_STATE_DIR: stateDir, DOCKER_HOST: `unix://${engine.address}` },
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

// What the hidden command offers, which the shells of the tests above call.
async function offer(...words: string[]): Promise<{ words: string[]; wantsFiles: boolean }> {
  const { candidates, wantsFiles } = await complete(program, words, async () => await Promise.resolve(NOTHING_RUNS));
  return { words: candidates.map(({ word }) => word), wantsFiles };
}
