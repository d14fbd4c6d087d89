// Proves which requests the engine gets, that only its socket is asked, and that what other machines make long is bounded.

import assert from "node:assert/strict";
import { once } from "node:events";
import { type IncomingMessage, type ServerResponse, createServer } from "node:http";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, mock, test } from "node:test";

import { codeOf, reasonOf } from "../../../../src/base/lib/fault.ts";
import { Members } from "../../../../src/base/lib/json-scanner.ts";
import { LIMITS } from "../../../../src/base/limits.ts";
import { Engine } from "../../../../src/container/watch/engine.ts";
import { countRounds } from "../../../support/rig/rounds.ts";

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
    response.end(/^\/(?:tasks|services)/.test(url) ? "[]" : "{}");
  });
  await engine.readOne({ path: `/networks/${encodeURIComponent("a/b")}?`, options: { verbose: true }, shape: {} });
  const options = { filters: JSON.stringify({ "desired-state": ["running"] }) };
  await engine.readList({ path: "/tasks?", options, shape: {} });
  await engine.readList({ path: "/services", shape: {} });
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
  const one = { path: "/networks/n", shape: {}, notHere: [404] };
  assert.equal(await engine.readOne(one), undefined);
  assert.equal(await engine.network("n"), undefined);
  status = 503;
  assert.equal(await engine.readList({ path: "/services", shape: {}, notHere: [406, 503] }), undefined);
  await assert.rejects(engine.readOne(one), (error) => /503.*why/.test(reasonOf(error)));
  await assert.rejects(engine.network("n"), (error) => codeOf(error) === "ENGINE_AWAY");
});

test("a list that is too long is refused", async (t) => {
  const bytesMax = 200_000;
  const service = JSON.stringify({ Spec: { Name: "x".repeat(4_000) } });
  const engine = await engineThat(t, (response, { url = "" }) => {
    const count = bytesMax / 4_000;
    const isNetwork = url.startsWith("/networks");
    response.write(isNetwork ? '{"Services":{"a":{"Tasks":[' : "[");
    const each = isNetwork ? JSON.stringify({ Name: "x".repeat(4_000) }) : service;
    for (let index = 0; index <= count; index++) response.write(`${index === 0 ? "" : ","}${each}`);
    response.end(isNetwork ? "]}}}" : "]");
  });
  const isRefused = (error: unknown): boolean =>
    /what is read of the reply to .* is over \d+ bytes/.test(reasonOf(error));
  const network = { Services: new Members({ Tasks: { Name: true } }) } as const;
  await assert.rejects(engine.readOne({ path: "/networks/n", shape: network, bytesMax }), isRefused);
  const services = { Spec: { Name: true } } as const;
  await assert.rejects(engine.readList({ path: "/services", shape: services, bytesMax }), isRefused);
});

test("what nobody reads may be of any size: the rest is read, in steps between which other work runs", async (t) => {
  const labels = { team: "x", "io.dns11.enable": "false", ...longLabels(40_000) };
  const json = JSON.stringify({
    Id: "c",
    Config: { Labels: labels, Env: ["A=1", "KIND_DNS_SEARCH=a.test"] },
    State: { Pid: 7 },
  });
  const engine = await engineThat(t, (response) => response.end(json));
  const kept = {
    Id: "c",
    Config: { Labels: { "io.dns11.enable": "false" }, Env: ["KIND_DNS_SEARCH=a.test"] },
    State: { Pid: 7 },
  };
  using rounds = countRounds();
  assert.deepEqual(await engine.container("c"), kept);
  assert.ok(rounds.count > 4, String(rounds.count));
  engine.labels.add(["team"]);
  assert.equal((await engine.container("c"))?.Config?.Labels?.["team"], "x");
});

test("who is read about is marked while it is read", async (t) => {
  const engine = await engineThat(t, (response) => response.end('{"Id":"c"}'));
  const marked: string[] = [];
  engine.readStep = (id, step) => {
    marked.push(id);
    step();
  };
  await engine.container("c");
  await engine.image("i", undefined, "d");
  await engine.network("n");
  assert.deepEqual(marked, ["c", "d"]);
});

test("an engine that falls silent in the middle of a reply is given up, and one that goes on is not", async (t) => {
  const replies: ServerResponse[] = [];
  const engine = await engineThat(t, (response) => {
    response.write('{"Id":');
    replies.push(response);
  });
  mock.timers.enable({ apis: ["setTimeout"] });
  t.after(() => mock.timers.reset());
  const begun = async (count: number): Promise<void> => {
    while (replies.length < count) await new Promise((resolve) => setImmediate(resolve));
  };
  const silent = engine.container("c");
  await begun(1);
  mock.timers.tick(LIMITS.inspectMs);
  await assert.rejects(silent, (error) => /no whole reply to .* within 10 s/.test(reasonOf(error)));
  const other = engine.container("c");
  await begun(2);
  mock.timers.tick(LIMITS.inspectMs - 1);
  replies[1]?.end('"c"}');
  assert.deepEqual(await other, { Id: "c" });
});

test("events of networks do not wait for those of containers, and both end when one of them does", async (t) => {
  const streams = new Map<string, ServerResponse>();
  const engine = await engineThat(t, (response, { url = "" }) => {
    response.writeHead(200).flushHeaders();
    streams.set(decodeURIComponent(url).includes('"network"') ? "network" : "container", response);
  });
  const connection = new AbortController();
  t.after(() => connection.abort());
  const events = (await engine.events(connection.signal))[Symbol.asyncIterator]();
  assert.deepEqual([...streams.keys()].toSorted(), ["container", "network"]);
  streams.get("container")?.write(`{"Type":"container","Actor":{"ID":"c","Attributes":{"a":"`);
  const network = { Type: "network", Action: "connect", Actor: { ID: "n", Attributes: { container: "c" } } };
  streams.get("network")?.write(`${JSON.stringify(network)}\n${JSON.stringify(network)}\n`);
  for (let count = 0; count < 2; count++) assert.deepEqual((await events.next()).value, network);
  streams.get("container")?.write(`b","exitCode":"1"}},"Action":"die"}\n`);
  const died = { Type: "container", Actor: { ID: "c", Attributes: { exitCode: "1" } }, Action: "die" };
  assert.deepEqual((await events.next()).value, died);
  streams.get("network")?.end();
  assert.equal((await events.next()).done, true);
});

function longLabels(count: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`label-${index}`, "y".repeat(200)]));
}

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
