// Proves when an engine is taken for the user's own rootless one, and where the state of its dns11 is.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { engineAddress, isOwnEngine } from "../../../src/api/engine-address.ts";
import { DEFAULT_STATE_DIR, defaultStateDir } from "../../../src/api/state-paths.ts";

/** Who owns the files of this test; a user, as far as these functions can tell. */
const [ROOT, USER] = [0, process.getuid?.() || 4711];
const runtime = mkdtempSync(join(tmpdir(), "d11-runtime-"));
after(() => rmSync(runtime, { recursive: true }));
const env = { HOME: runtime, XDG_RUNTIME_DIR: runtime };
const socket = join(runtime, "docker.sock");

test("while there is no socket of the user, the default is the machine's engine", () => {
  assert.equal(engineAddress(undefined, env, USER).socketPath, "/var/run/docker.sock");
  assert.equal(defaultStateDir(undefined, env, USER), DEFAULT_STATE_DIR);
});

test("an engine that is away is the user's own by the place of its socket", () => {
  assert.equal(isOwnEngine(socket, env, USER), true);
  assert.equal(isOwnEngine(join(runtime, "../docker.sock"), env, USER), false);
  assert.equal(isOwnEngine(`${runtime}-2/docker.sock`, env, USER), false);
  assert.equal(defaultStateDir(`unix://${socket}`, env, USER), join(runtime, "dns11"));
});

test("a socket belongs to its owner, wherever it is, and never to root's commands", () => {
  const elsewhere = join(runtime, "elsewhere");
  mkdirSync(elsewhere);
  const path = join(elsewhere, "docker.sock");
  writeFileSync(path, "");
  const owner = process.getuid?.() ?? ROOT;
  assert.equal(isOwnEngine(path, {}, USER), USER === owner);
  assert.equal(isOwnEngine(path, env, USER + 1), false);
  assert.equal(isOwnEngine(path, env, ROOT), false);
  assert.equal(defaultStateDir(`unix://${path}`, env, ROOT), DEFAULT_STATE_DIR);
});

test("without a runtime directory, or with one that is no absolute path, the state is where it is for root", () => {
  for (const folder of [undefined, "", "run"]) {
    const address = folder === undefined ? "unix:///var/run/docker.sock" : `unix://${folder}/docker.sock`;
    const own = folder === undefined ? {} : { XDG_RUNTIME_DIR: folder };
    assert.equal(defaultStateDir(address, own, USER), DEFAULT_STATE_DIR);
  }
});

test("an address that cannot be used leaves the default", () => {
  assert.equal(defaultStateDir("tcp://127.0.0.1:1", env, USER), DEFAULT_STATE_DIR);
});
