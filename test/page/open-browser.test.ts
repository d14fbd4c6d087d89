// Proves when `dns11 ui` opens a browser: for a user with a desktop, through a file that only this user can read; never for root, behind
// SSH or without a display; and that one which does not start changes nothing.

import assert from "node:assert/strict";
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { SYSTEM_PATH } from "../support/program/command.ts";
import { UiCommand, type UiOptions } from "../support/program/ui-command.ts";
import { SHOP_SAMPLE, sampleSnapshot } from "../support/page/sample.ts";
import { SampleControl } from "../support/page/sample-control.ts";
import { waitFor } from "../support/rig/wait.ts";

const USER = 65_534;
/** Of whoever runs the tests. */
const DESKTOP = { DISPLAY: ":9", WAYLAND_DISPLAY: undefined, SSH_CONNECTION: undefined, SSH_TTY: undefined };
const CANNOT = "Cannot start a browser (xdg-open): open the URL yourself.";

let control: SampleControl;
let programs: string;
let opened: string;
let runtime: string;

before(async () => {
  control = await SampleControl.start(sampleSnapshot(SHOP_SAMPLE));
  [programs, opened, runtime] = [folder("bin"), join(folder("opened"), "by"), folder("runtime")];
});
after(async () => await control[Symbol.asyncDispose]());

/** Of the user. */
function folder(name: string): string {
  const path = join(control.folder, name);
  mkdirSync(path);
  chownSync(path, USER, USER);
  return path;
}

/** An xdg-open that ends with this code, and before that notes its arguments and what is in the file. */
function xdgOpen(code: number): void {
  const script = `#!/bin/sh
{ echo "$#"; echo "$1"; stat -c %a "$1"; cat "$1"; } >${opened}.new
mv ${opened}.new ${opened}
exit ${code}
`;
  writeFileSync(join(programs, "xdg-open"), script);
  chmodSync(join(programs, "xdg-open"), 0o755);
}

async function start(env: NodeJS.ProcessEnv, options: UiOptions = {}): Promise<UiCommand> {
  const own = { PATH: `${programs}:${SYSTEM_PATH}`, XDG_RUNTIME_DIR: runtime, TMPDIR: runtime, HOME: runtime };
  return await UiCommand.start(control, { args: [], ...options, env: { ...DESKTOP, ...own, ...env } });
}

/** It has served a request, so what it does at its start is done. */
async function assertNotOpened(ui: UiCommand): Promise<void> {
  assert.equal((await ui.fetch("/v1/failures")).status, 200);
  assert.deepEqual(readdirSync(runtime), []);
  assert.ok(!ui.output.includes(CANNOT), ui.output);
}

test("a user's browser opens a file that leads to the page, and no argument has the token", async () => {
  xdgOpen(0);
  const ui = await start({}, { uid: USER });
  await waitFor("xdg-open to be started", () => (existsSync(opened) ? true : undefined));
  const [count, file = "", mode, ...lines] = readFileSync(opened, "utf8").split("\n");
  assert.deepEqual([count, mode], ["1", "600"]);
  assert.match(file, new RegExp(`^${runtime}/dns11-ui-\\w+/open\\.html$`));
  assert.ok(lines.join("\n").includes(`content="0;url=${ui.url}"`), lines.join("\n"));
  assert.equal(await ui.end("SIGINT"), 0);
  assert.deepEqual(readdirSync(runtime), [], "the file with the token is removed");
});

test("for root, behind SSH, without a display, or if it is not wanted, the URL is printed only", async () => {
  xdgOpen(0);
  for (const [env, options] of [
    [{}, {}],
    [{ DISPLAY: undefined }, {}],
    [{ DISPLAY: undefined }, { uid: USER }],
    [{ SSH_CONNECTION: "192.0.2.1 1 192.0.2.2 22" }, { uid: USER }],
    [{}, { uid: USER, args: ["--no-open"] }],
  ] as const) {
    await using ui = await start(env, options);
    await assertNotOpened(ui);
  }
});

test("a browser that does not start, or fails, is reported, and the page is served", async () => {
  for (const path of [`${programs}:${SYSTEM_PATH}`, "/nonexistent"]) {
    xdgOpen(3);
    await using ui = await start({ PATH: path }, { uid: USER });
    await waitFor("it to be reported", () => (ui.output.includes(CANNOT) ? true : undefined));
    assert.equal((await ui.fetch("/v1/failures")).status, 200);
  }
});
