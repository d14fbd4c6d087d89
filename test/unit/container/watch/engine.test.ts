// Proves which requests the engine gets, that only its socket is asked, and that what other machines make long is bounded.

import assert from "node:assert/strict";
import { once } from "node:events";
import { type IncomingMessage, type ServerResponse, createServer } from "node:http";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";

import { codeOf } from "../../../../src/base/lib/fault.ts";
import { LIMITS } from "../../../../src/base/limits.ts";
import { Engine } from "../../../../src/container/watch/engine.ts";

type Reply = (response: ServerResponse, request: IncomingMessage) => void;

async function engineThat(t: TestContext, reply: Reply): Promise<Engine> {
  const folder = mkdtempSync(join(tmpdir(), "dns11-engine-"));
  const server = createServer((request, response) => reply(response, request)).listen(join(folder, "socket"));
  await once(server, "listening");
  t.after(() => {
    server.close();
    rmSync(folder, { recursive: true });
  });
  return new Engine(join(folder, "socket"));
}

test("requests have their parameters", async (t) => {
  const paths: string[] = [];
  const engine = await engineThat(t, (response, { url = "" }) => {
    paths.push(decodeURIComponent(url));
    response.end("{}");
  });
  await engine.swarmNetwork("a/b");
  await engine.swarmTasks();
  await engine.swarmServices();
  await engine.network("n");
  assert.deepEqual(paths, [
    "/networks/a/b?verbose=true",
    '/tasks?filters={"desired-state":["running"]}',
    "/services",
    "/networks/n",
  ]);
});

test("what the engine does not have is undefined, and other statuses are errors", async (t) => {
  let status = 404;
  const engine = await engineThat(t, (response) => response.writeHead(status).end('{"message":"why"}'));
  assert.equal(await engine.swarmNetwork("n"), undefined);
  assert.equal(await engine.network("n"), undefined);
  status = 503;
  assert.equal(await engine.swarmServices(), undefined);
  await assert.rejects(engine.swarmNetwork("n"), /503.*why/);
  await assert.rejects(engine.network("n"), (error) => codeOf(error) === "ENGINE_AWAY");
});

test("a list that is too long is refused, in whatever pieces it comes", async (t) => {
  const engine = await engineThat(t, (response) => {
    const piece = Buffer.alloc(1 << 20, " ");
    for (let bytes = 0; bytes <= LIMITS.swarmListBytes; bytes += piece.length) response.write(piece);
    response.end("{}");
  });
  await assert.rejects(engine.swarmNetwork("n"), /the reply to .* is over \d+ bytes/);
});

test("a socket that was chosen is asked, whatever DOCKER_HOST says", async (t) => {
  const before = process.env["DOCKER_HOST"];
  t.after(() => {
    if (before === undefined) delete process.env["DOCKER_HOST"];
    else process.env["DOCKER_HOST"] = before;
  });
  process.env["DOCKER_HOST"] = "ssh://nobody@dns11.invalid";
  const engine = await engineThat(t, (response) => response.end('{"Id":"n"}'));
  assert.deepEqual(await engine.network("n"), { Id: "n" });
});
