// Proves that an engine that was named is never replaced by another one's instance, and that an instance is still found while
// its engine does not respond.

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { type Server, createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { locateControl } from "../../../src/api/locate.ts";
import { connect } from "../../../src/api/suite.ts";
import { useEnvironment } from "../support/environment.ts";

const folder = mkdtempSync(join(tmpdir(), "d11-locate-"));
const engine = join(folder, "docker.sock");
const [one, two, none] = ["one", "two", "none"].map((name) => join(folder, name)) as [string, string, string];
const servers: Server[] = [];

useEnvironment({ DOCKER_HOST: undefined, DOCKER_CONTEXT: undefined, DOCKER_CONFIG: folder });
before(async () => {
  mkdirSync(none);
  await serve(join(one, "a"), engine);
  await serve(join(two, "a"), engine);
  await serve(join(two, "b"), "/run/other.sock");
});
after(() => {
  for (const server of servers) server.close();
  rmSync(folder, { recursive: true });
});

// The control socket of an instance.
async function serve(path: string, address: string, id?: string): Promise<void> {
  mkdirSync(path, { recursive: true });
  const server = createServer((_, response) => response.end(JSON.stringify({ engine: { address, id } })));
  servers.push(server);
  await once(server.listen(join(path, "control.sock")), "listening");
}

function fault(message: string): object {
  return { code: "NO_INSTANCE", message };
}

test("a named engine that does not exist is an error, which names the engine that is served", async () => {
  const missing = `unix://${folder}/nonexistent.sock`;
  const text = `No engine at ${folder}/nonexistent.sock, and no dns11 that serves it`;
  await assert.rejects(locateControl(one, missing), fault(`${text} (one serves ${engine})`));
  await assert.rejects(locateControl(two, missing), fault(`${text} (one serves ${engine}, another /run/other.sock)`));
  await assert.rejects(locateControl(none, missing), fault(text));
  await assert.rejects(connect({ engine: missing, stateDir: one }), fault(`${text} (one serves ${engine})`));
});

test("so is one that DOCKER_HOST names", async () => {
  process.env["DOCKER_HOST"] = "unix:///nonexistent.sock";
  try {
    await assert.rejects(locateControl(one, undefined), { code: "NO_INSTANCE" });
  } finally {
    delete process.env["DOCKER_HOST"];
  }
});

test("an engine that hangs is not waited for where an instance serves its socket, which is said", async () => {
  const socket = join(folder, "hung.sock");
  const hung = createServer(() => undefined);
  servers.push(hung);
  await once(hung.listen(socket), "listening");
  await serve(join(two, "hung-id"), socket, "hung-id");
  const heard: unknown[] = [];
  const path = await locateControl(two, `unix://${socket}`, (silent) => heard.push(silent));
  assert.equal(path, join(two, "hung-id", "control.sock"));
  assert.deepEqual(heard, [{ socketPath: socket, isFound: true }]);
  hung.closeAllConnections();
});

test("while the engine is away, its instance is found by the socket that it serves, also through a link", async () => {
  assert.equal(await locateControl(two, `unix://${engine}`), join(two, "a", "control.sock"));
  assert.equal(await locateControl(two, "unix:///run/other.sock"), join(two, "b", "control.sock"));
  symlinkSync(folder, join(none, "link"));
  assert.equal(await locateControl(one, `unix://${none}/link/docker.sock`), join(one, "a", "control.sock"));
});
