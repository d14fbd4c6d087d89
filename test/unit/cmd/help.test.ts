// Proves that the help begins with examples that the program understands, groups the commands and keeps a line for each.

import assert from "node:assert/strict";
import { before, test } from "node:test";

import { createProgram } from "../../../cmd/program.ts";
import { type CommandHelp, helpOfAll, manualPage } from "../../support/program/command-help.ts";
import { dns11 } from "../../support/program/dns11.ts";

const WIDTH = 80;
const EXAMPLES_MAX = 3;

let all: readonly CommandHelp[];
before(async () => void (all = await helpOfAll()));

test("every help begins with one to three examples of commands and flags that exist", () => {
  assert.ok(all.length > 20);
  for (const { path, examples } of all) {
    const name = path.join(" ");
    assert.ok(examples.length >= 1 && examples.length <= EXAMPLES_MAX, name);
    for (const example of examples) {
      // What follows -- is another program's.
      const [program, ...words] = (example.split(" -- ", 1)[0] ?? "").split(" ");
      assert.equal(program, "dns11", name);
      // The longest path that the line begins with.
      const command = all.findLast((each) => each.path.length > 0 && each.path.every((word, at) => word === words[at]));
      assert.ok(command, example);
      const flags = words.filter((word) => word.startsWith("--"));
      for (const flag of flags) assert.ok(command.flags.includes(flag), `${example}: ${flag}`);
      assert.ok(path.every((word, at) => word === words[at]) || words[0] === "run" || path[0] === "help", example);
    }
  }
});

test("commands are grouped, with one line for each", async () => {
  const { stdout } = await dns11(["--help"]);
  assert.deepEqual(
    [...stdout.matchAll(/^(\w+):$/gm)].map(([, heading]) => heading),
    ["Examples", "Options", "Run", "Look", "Diagnose", "Test", "Maintain"],
  );
  const names = all.filter(({ path }) => path.length === 1).map(({ path: [name] }) => name);
  for (const name of names) assert.match(stdout, new RegExp(`^  ${name}(?: [<[].+?[>\\]])* {2,}[A-Z].*[^.]$`, "m"));
  for (const line of stdout.split("\n")) assert.ok(line.length <= WIDTH, line);
  assert.doesNotMatch(stdout, /^ {10,}/m, "a description that does not fit on its line");
});

test("a command that is made alone is the one of the whole program", async () => {
  const whole = await createProgram("dns11");
  for (const { path } of all.filter((each) => each.path.length === 1)) {
    const [name = ""] = path;
    const alone = (await createProgram("dns11", name)).commands.find((each) => each.name() === name);
    assert.equal(alone?.helpInformation(), whole.commands.find((each) => each.name() === name)?.helpInformation());
    assert.ok(alone, name);
  }
  assert.equal((await createProgram("dns11", "run")).commands.length, 1);
});

test("the page of all help texts has what a user sees", async () => {
  const page = await manualPage("commands.md");
  for (const words of [["--help"], ["run", "--help"], ["cache", "flush", "--help"]]) {
    const { stdout } = await dns11(words);
    assert.ok(page.includes(`\n\`\`\`text dns11 ${words.join(" ")}\n${stdout.trimEnd()}\n\`\`\`\n`), words.join(" "));
  }
});

test("words of other programs are answered with what there is instead", async () => {
  for (const [word, answer] of [
    ["stop", /there is no command 'stop': [\s\S]*Ctrl-C[\s\S]*systemctl stop dns11[\s\S]*docker stop dns11/],
    ["logs", /there is no command 'logs': [\s\S]*journalctl -u dns11[\s\S]*docker logs dns11[\s\S]*dns11 tail/],
    ["kill", /systemctl stop dns11/],
  ] as const) {
    const { code, stdout, stderr } = await dns11([word]);
    assert.deepEqual([code, stdout], [2, ""]);
    assert.match(stderr, answer);
  }
});

test("run has few flags: those that people type", () => {
  const run = all.find(({ path }) => path.join(" ") === "run");
  assert.ok(run !== undefined && run.flags.length <= 25, run?.flags.join(" "));
});
