// Proves who gets what from the listener of the page: nobody without the token, no other host, no other page, no other route, and
// nothing beyond the limits.

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { type IncomingMessage, type Server, type ServerResponse, createServer, request } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, test } from "node:test";

import { TOKEN_HEADER, UiServer } from "../../../src/ui/server/ui-server.ts";
import type { RelayLimits } from "../../../src/ui/server/relay.ts";
import { waitFor } from "../../support/rig/wait.ts";

const FILES = new Map([
  ["index.html", { type: "text/html; charset=utf-8", bytes: Buffer.from("<!doctype html>") }],
  ["app.js", { type: "text/javascript; charset=utf-8", bytes: Buffer.from("1") }],
]);
const HOSTILE = 'evil"</script><img src=x onerror=alert(1)>\u001b[2J\u202e';
const folder = mkdtempSync(join(tmpdir(), "d11-ui-"));
const socketPath = join(folder, "control.sock");

let control: Server;
let asked: string[];
let server: UiServer;
/** Open responses of the control socket. */
let open = 0;

before(async () => {
  control = createServer((incoming, outgoing) => void answer(incoming, outgoing));
  control.listen(socketPath);
  await once(control, "listening");
});
after(() => {
  control.close();
  control.closeAllConnections();
  rmSync(folder, { recursive: true });
});
beforeEach(async () => {
  asked = [];
  server = await start();
});
afterEach(() => server.close());

async function start(
  limits: RelayLimits = {},
  doctor: readonly string[] = ["false"],
  path = socketPath,
): Promise<UiServer> {
  return await UiServer.listen({ port: 0, socketPath: path, files: FILES, doctor, limits });
}

/** A control socket that repeats what it was asked, or streams for as long as it is read. */
async function answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  let body = "";
  for await (const chunk of incoming) body += String(chunk);
  asked.push(`${incoming.method} ${incoming.url} ${body}`.trim());
  if (incoming.url?.includes("follow=true") !== true) {
    outgoing.writeHead(incoming.url === "/v1/names?container=none" ? 400 : 200, { "content-type": "application/json" });
    return void outgoing.end(JSON.stringify({ name: HOSTILE }));
  }
  open++;
  outgoing.on("close", () => open--);
  outgoing.writeHead(200, { "content-type": "application/x-ndjson" });
  const flood = incoming.url.includes("flood");
  const more = (): void => {
    do if (outgoing.destroyed) return;
    while (outgoing.write(`${JSON.stringify({ name: "x".repeat(flood ? 4_096 : 1) })}\n`) && flood);
  };
  outgoing.on("drain", more);
  more();
}

interface Asked {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  readonly hasToken?: boolean;
  readonly address?: string;
}

interface Answered {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly text: string;
  readonly code: string | undefined;
}

function tokenOf({ url }: UiServer): string {
  return /#token=([0-9a-f]{64})$/.exec(url)?.[1] ?? assert.fail(url);
}

function hostOf({ url }: UiServer): string {
  return /^http:\/\/(d11-[0-9a-f]{32}\.localhost:\d+)\/#/.exec(url)?.[1] ?? assert.fail(url);
}

function requestTo(
  path: string,
  { method = "GET", headers = {}, body, hasToken = true, address = "127.0.0.1" }: Asked = {},
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      {
        host: address,
        port: server.port,
        path,
        method,
        agent: false,
        headers: { host: hostOf(server), ...(hasToken && { [TOKEN_HEADER]: tokenOf(server) }), ...headers },
      },
      resolve,
    );
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

async function ask(path: string, parts: Asked = {}): Promise<Answered> {
  const answered = await requestTo(path, parts);
  let text = "";
  for await (const chunk of answered) text += String(chunk);
  let code: string | undefined;
  try {
    ({ code } = JSON.parse(text) as { code?: string });
  } catch {
    // It is no JSON.
  }
  return { status: answered.statusCode ?? 0, headers: answered.headers, text, code };
}

test("the files of the page need no token, and forbid everything from elsewhere", async () => {
  const { status, headers, text } = await ask("/", { hasToken: false });
  assert.deepEqual([status, text, headers["content-type"]], [200, "<!doctype html>", "text/html; charset=utf-8"]);
  const policy = headers["content-security-policy"]?.toString() ?? "";
  assert.match(policy, /^default-src 'none'; script-src 'self';/);
  assert.match(policy, /frame-ancestors 'none'/);
  assert.doesNotMatch(policy, /unsafe|\*|https?:/);
  assert.deepEqual(
    ["x-content-type-options", "referrer-policy", "cache-control", "cross-origin-resource-policy"].map(
      (key) => headers[key],
    ),
    ["nosniff", "no-referrer", "no-store", "same-origin"],
  );
  assert.equal(headers["access-control-allow-origin"], undefined);
  assert.equal((await ask("/app.js", { hasToken: false })).status, 200);
  assert.deepEqual(asked, []);
});

test("no path leads to another file", async () => {
  const paths = [
    "/index.html/",
    "/../package.json",
    "/..%2fpackage.json",
    "//etc/passwd",
    "/%2e%2e/app.js",
    "/app.js.map",
    "/.",
    "http://x/",
  ];
  for (const path of paths) assert.equal((await ask(path)).status, 404, path);
});

test("data needs the token of this start, exactly", async () => {
  const right = tokenOf(server);
  for (const token of ["", "x", right.slice(1), `${right}0`, right.toUpperCase(), "0".repeat(64)]) {
    const { status, code } = await ask("/v1/status", { hasToken: false, headers: { [TOKEN_HEADER]: token } });
    assert.deepEqual([status, code], [401, "UI_TOKEN"], token);
  }
  assert.equal((await ask("/v1/status", { hasToken: false })).status, 401);
  assert.equal((await ask(`/v1/status?token=${right}`, { hasToken: false })).status, 401);
  assert.deepEqual(asked, []);
  assert.equal((await ask("/v1/status")).status, 200);
  await using other = {
    server: await start(),
    [Symbol.asyncDispose]: async () => await Promise.resolve(other.server.close()),
  };
  assert.notEqual(tokenOf(other.server), right);
});

test("a name that an attacker points to this address is refused, with and without the token, also for files", async () => {
  for (const host of [
    "evil.test",
    `evil.test:${server.port}`,
    `127.0.0.1:${server.port}`,
    `localhost:${server.port}`,
    `d11-${"0".repeat(32)}.localhost:${server.port}`,
    `x.${hostOf(server)}`,
    hostOf(server).replace(/:.*/, ""),
    `[::1]:${server.port}`,
  ]) {
    for (const path of ["/", "/v1/status"]) {
      assert.deepEqual([(await ask(path, { headers: { host } })).code], ["UI_HOST"], `${host} ${path}`);
    }
  }
  assert.deepEqual(asked, []);
});

test("each start has a host of its own, for which nobody can have left a service worker", async () => {
  const earlier = hostOf(server);
  server.close();
  server = await start();
  assert.notEqual(hostOf(server).replace(/:.*/, ""), earlier.replace(/:.*/, ""));
  assert.equal((await ask("/", { headers: { host: earlier } })).code, "UI_HOST");
});

test("the page is served on both loopback addresses, or on none: the browser may try either", async () => {
  const answered = await requestTo("/", { address: "::1" });
  assert.equal(answered.statusCode, 200);
  answered.resume();
  const other = createServer();
  other.listen(0, "::1");
  await once(other, "listening");
  const { port } = other.address() as AddressInfo;
  await assert.rejects(UiServer.listen({ port, socketPath, files: FILES, doctor: [] }), {
    code: "UI_PORT",
    message: `Port ${port} of ::1 is in use`,
  });
  const again = createServer();
  again.listen(port, "127.0.0.1");
  await once(again, "listening");
  for (const each of [other, again]) each.close();
});

test("another page is refused even with the token; the page itself is not", async () => {
  const own = `http://${hostOf(server)}`;
  const foreign = [
    "http://evil.test",
    "null",
    "https://127.0.0.1",
    `http://127.0.0.1:${server.port}`,
    `http://localhost:${server.port}`,
    `https://${hostOf(server)}`,
  ];
  for (const origin of foreign)
    assert.equal((await ask("/v1/status", { headers: { origin } })).code, "UI_ORIGIN", origin);
  for (const site of ["cross-site", "same-site"]) {
    assert.equal((await ask("/v1/status", { headers: { "sec-fetch-site": site } })).code, "UI_ORIGIN", site);
  }
  assert.equal((await ask("/v1/status", { method: "OPTIONS", headers: { origin: "http://evil.test" } })).status, 403);
  assert.deepEqual(asked, []);
  assert.equal((await ask("/v1/status", { headers: { origin: own, "sec-fetch-site": "same-origin" } })).status, 200);
});

test("only what changes nothing is passed on", async () => {
  const others = [
    "POST /v1/reload",
    "POST /v1/cache/flush",
    "POST /v1/repair",
    "POST /v1/probes",
    "POST /v1/kind/detach",
  ];
  for (const route of [
    ...others,
    "GET /metrics",
    "GET /v1/../v1/status",
    "GET /v1/status/",
    "GET /v1//status",
    "GET /v1/%73tatus",
  ]) {
    const [method = "", path = ""] = route.split(" ");
    assert.equal((await ask(path, { method, body: method === "POST" ? "{}" : "" })).status, 404, route);
  }
  for (const route of [
    "POST /v1/status",
    "DELETE /v1/status",
    "GET /v1/explain",
    "PUT /v1/lookup",
    "GET /v1/doctor",
    "POST /",
  ]) {
    const [method = "", path = ""] = route.split(" ");
    assert.equal((await ask(path, { method })).status, 405, route);
  }
  assert.deepEqual(asked, []);
});

test("parameters, bodies, statuses and hostile names are passed on as they are, as JSON that is nothing else", async () => {
  const name = encodeURIComponent(`${HOSTILE}&x\r\n`);
  const { status, headers, text } = await ask(`/v1/names?project=${name}`);
  assert.deepEqual(
    [status, headers["content-type"], headers["x-content-type-options"]],
    [200, "application/json", "nosniff"],
  );
  assert.deepEqual(JSON.parse(text), { name: HOSTILE });
  const parameters = new URLSearchParams(asked[0]?.split("?")[1]);
  assert.deepEqual([...parameters], [["project", `${HOSTILE}&x\r\n`]]);
  assert.equal((await ask("/v1/names?container=none")).status, 400);
  await ask("/v1/explain", { method: "POST", body: '{"container":"a","name":"b"}' });
  assert.equal(asked.at(-1), 'POST /v1/explain {"container":"a","name":"b"}');
});

test("large bodies and parameters are refused", async () => {
  const large = await ask("/v1/explain", { method: "POST", body: Buffer.alloc(4_097, "x") });
  assert.deepEqual([large.status, large.code], [413, "TOO_LONG"]);
  const long = await ask(`/v1/names?project=${"x".repeat(2_048)}`);
  assert.deepEqual([long.status, long.code], [413, "TOO_LONG"]);
  assert.deepEqual(asked, []);
});

test("streams are bounded, and one that ends makes room", async () => {
  server.close();
  server = await start({ streams: 2 });
  const first = await requestTo("/v1/queries?follow=true");
  await requestTo("/v1/events?follow=true");
  first.on("error", () => undefined);
  const refused = await ask("/v1/events?follow=true");
  assert.deepEqual([refused.status, refused.code], [429, "UI_BUSY"]);
  assert.equal((await ask("/v1/status")).status, 200, "other requests have their own room");
  first.destroy();
  await waitFor("room for a stream", async () => {
    const again = await requestTo("/v1/events?follow=true");
    again.on("error", () => undefined);
    return again.statusCode === 200 ? true : undefined;
  });
});

test("a reader that takes nothing is dropped, and the daemon is not read any further for it", async () => {
  server.close();
  server = await start({ stallMs: 300 });
  await waitFor("earlier streams to end", () => (open === 0 ? true : undefined));
  const socket = connect(server.port, "127.0.0.1");
  socket.on("error", () => undefined);
  socket.pause();
  socket.write(
    `GET /v1/queries?follow=true&name=flood HTTP/1.1\r\nHost: ${hostOf(server)}\r\n${TOKEN_HEADER}: ${tokenOf(server)}\r\n\r\n`,
  );
  await waitFor("the stream to begin", () => (asked.length === 1 ? true : undefined));
  await waitFor("the stream to end", () => (open === 0 ? true : undefined));
  socket.destroy();
});

test("without a run it says so", async () => {
  server.close();
  server = await start({}, ["false"], join(folder, "none.sock"));
  const { status, code } = await ask("/v1/status");
  assert.deepEqual([status, code], [503, "NOT_RUNNING"]);
});

test("a port that is taken is an error with a remedy", async () => {
  await assert.rejects(UiServer.listen({ port: server.port, socketPath, files: FILES, doctor: [] }), {
    code: "UI_PORT",
    message: `Port ${server.port} of 127.0.0.1 is in use`,
    remedy: /--port 0/,
  });
});

async function doctorOf(script: string, body: string): Promise<Answered> {
  server.close();
  server = await start({}, [process.execPath, "-e", script, "doctor"]);
  return await ask("/v1/doctor", { method: "POST", body });
}

test("the doctor is a program of the user: its lines are passed on, and no name is an option", async () => {
  const script = 'console.log(JSON.stringify({args: process.argv.slice(1)})); console.log("{\\"problems\\":[]}")';
  const { headers, text } = await doctorOf(script, '{"container":"--fix","project":"-x --fix"}');
  assert.equal(headers["content-type"], "application/x-ndjson");
  const [first = "", last] = text.trim().split("\n");
  assert.deepEqual(JSON.parse(first), { args: ["doctor", "--project=-x --fix", "--", "--fix"] });
  assert.equal(last, '{"problems":[]}');
});

test("a doctor that fails ends the stream with its error", async () => {
  const failed = await doctorOf('process.stdout.write("{}\\n{"); console.error("dns11: not root")', "");
  assert.deepEqual(failed.text.split("\n"), ["{}", "{", '{"error":"not root","code":"DOCTOR"}', ""]);
  const killed = await doctorOf("process.kill(process.pid, 'SIGKILL')", "{}");
  assert.match(killed.text, /"error":"The checks were ended \(SIGKILL\) before they were complete"/);
});

test("what the doctor is to check must be names", async () => {
  for (const body of [
    "[]",
    '"x"',
    "{",
    '{"container":1}',
    '{"fix":true}',
    '{"container":""}',
    `{"project":"${"x".repeat(256)}"}`,
  ]) {
    assert.equal((await doctorOf("process.exit(9)", body)).status, 400, body);
  }
});

test("the doctor runs once at a time, and ends when its reader has gone", async () => {
  server.close();
  server = await start({}, [process.execPath, "-e", "console.log(process.pid); setInterval(() => {}, 1000)", "doctor"]);
  const first = await requestTo("/v1/doctor", { method: "POST" });
  first.on("error", () => undefined);
  const [chunk] = (await once(first, "data")) as [Buffer];
  const pid = Number(chunk.toString());
  assert.equal((await ask("/v1/doctor", { method: "POST" })).status, 429);
  first.destroy();
  await waitFor("the doctor to end", () => {
    try {
      process.kill(pid, 0);
      return undefined;
    } catch {
      return true;
    }
  });
});
