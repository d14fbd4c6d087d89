// The package's client for test suites, on a live engine and imported as a user does: wait until a name resolves in a
// container, read its queries, and follow them.

import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { createConnection } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { type NotResolved, type QueryReport, type Suite, connect, isClientError } from "dns11/client";

import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { dig } from "../support/client/dig.ts";
import { type Dns11, dns11, startDns11 } from "../support/program/dns11.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { type Upstream, startUpstream } from "../support/servers/upstream.ts";
import { WAIT_TIMEOUT_MS, pause, waitFor } from "../support/rig/wait.ts";

let engine: Engine;
let upstream: Upstream;
let app: Container;
let instance: Dns11;
let dns: Suite;

before(async () => {
  engine = await startEngine();
  upstream = await startUpstream(engine);
  await createNetwork(engine, "n1");
  app = await runContainer(engine, { name: "app", networks: ["n1"] });
  instance = await startDns11(engine);
  dns = await connect({ engine: engine.host, stateDir: instance.stateDir });
});
after(async () => {
  dns.close();
  await instance[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

test("waiting for a name ends at once if it resolves, or as soon as a container has it", async () => {
  const [own] = await dns.waitUntilResolves("app", "app");
  assert.deepEqual([own?.type, own?.data], ["A", app.address("n1")]);
  const waiting = dns.waitUntilResolves("app", "late", { timeoutMs: WAIT_TIMEOUT_MS });
  await using late = await runContainer(engine, { name: "late", networks: ["n1"] });
  const records = await waiting;
  assert.deepEqual(
    records.map(({ data }) => data),
    [late.address("n1")],
  );
});

test("waiting also covers a container that does not exist yet", async () => {
  const waiting = dns.waitUntilResolves("coming", "app", { timeoutMs: WAIT_TIMEOUT_MS });
  await using _ = await runContainer(engine, { name: "coming", networks: ["n1"] });
  assert.equal((await waiting)[0]?.data, app.address("n1"));
});

test("waiting works for records of any type", async () => {
  const [record] = await dns.waitUntilResolves("app", "one.ok.test", { type: "AAAA" });
  assert.deepEqual(
    [record?.name.replace(/\.$/, ""), record?.type, record?.data],
    ["one.ok.test", "AAAA", "2001:db8::1"],
  );
});

for (const [name, type, got] of [
  ["nobody.nx.test", "A", /NXDOMAIN/],
  ["app", "MX", /no records/],
] as const) {
  test(`a timeout while waiting for ${type} of ${name} reports the last result`, async () => {
    // On a busy machine the last result may be that there was no answer in time.
    await waitFor("the last result", async () => {
      const waited = await dns
        .waitUntilResolves("app", name, { type, timeoutMs: 2_000 })
        .catch((error: Error) => error);
      assert.ok(waited instanceof Error);
      assert.equal((waited as Error & { code: string }).code, "NOT_RESOLVED");
      assert.match(waited.message, /did not resolve in "app" within 2000 ms; last result: /);
      return got.test(waited.message) ? true : undefined;
    });
  });
}

test("waiting in a service covers each of its containers, and a failure says which one and why", async () => {
  await createNetwork(engine, "n2");
  const replica = async (number: number, network: string): Promise<Container> => {
    const labels = { "com.docker.compose.project": "shop", "com.docker.compose.service": "api" };
    const container = await runContainer(engine, { name: `shop-api-${number}`, networks: [network], labels });
    await instance.waitFor(container.name, "attached");
    return container;
  };
  await using _one = await replica(1, "n1");
  await using two = await replica(2, "n2");
  // On a busy machine there may be no answer in time.
  const { message, causes } = await waitFor("a failure with its cause", async () => {
    const failed = await dns.waitUntilResolves("api", "app", { timeoutMs: 1_000 }).catch((error: NotResolved) => error);
    assert.ok(failed instanceof Error, "it does not resolve in the second one");
    assert.equal(failed.code, "NOT_RESOLVED");
    return failed.causes.length > 0 ? failed : undefined;
  });
  assert.equal(causes[0]?.code, "other-network");
  assert.match(message, /^"app" \(A\) did not resolve in "shop-api-2" of "api" within 1000 ms; last result: /);
  assert.ok(message.endsWith(`; ${causes[0]?.sentence}`), message);
  await engine.docker("network", "connect", "n1", two.name);
  const records = await dns.waitUntilResolves("api", "app", { timeoutMs: WAIT_TIMEOUT_MS });
  assert.deepEqual(
    records.map(({ data }) => data),
    [app.address("n1")],
    "once, though both have it",
  );
});

test("options that there are not, and times that no timer can have, are errors", async () => {
  const wrong = { timeout: 5 } as object;
  await assert.rejects(connect({ host: engine.host } as object), {
    code: "BAD_OPTION",
    message: 'Unknown option "host" of connect: use engine, socketPath, stateDir',
  });
  await assert.rejects(dns.waitUntilResolves("app", "app", wrong), {
    code: "BAD_OPTION",
    message: 'Unknown option "timeout" of waitUntilResolves: did you mean "timeoutMs"?',
  });
  await assert.rejects(dns.waitUntilResolves("app", "app", { timeoutMs: Number.NaN }), { code: "BAD_OPTION" });
  await assert.rejects(dns.queries("app", { snce: 1 } as object), {
    code: "BAD_OPTION",
    message: /did you mean "since"/,
  });
  assert.throws(() => dns.follow(wrong), { code: "BAD_OPTION" });
});

test("closing ends what is under way, and nothing works afterwards", async () => {
  await dig(app, "already.ok.test");
  const own = await connect({ engine: engine.host, stateDir: instance.stateDir });
  const following = (async () => {
    let count = 0;
    for await (const _ of own.follow({ last: 1 })) if ((count += 1) === 1) own.close();
    return count;
  })();
  const waiting = own.waitUntilResolves("app", "nobody.nx.test", { timeoutMs: WAIT_TIMEOUT_MS });
  await assert.rejects(waiting, { code: "CLOSED" });
  assert.equal(await following, 1);
  await assert.rejects(own.queries("app"), { code: "CLOSED" });
  await assert.rejects(own.waitUntilResolves("app", "app"), { code: "CLOSED" });
});

test("queries of a container are read from a sequence number on", async () => {
  await dig(app, "before.ok.test");
  const { last } = await dns.queries("app");
  await dig(app, "during.ok.test");
  await dig(app, "during.nx.test", "TXT");
  const { queries, missed } = await dns.queries("app", { since: last ?? assert.fail() });
  assert.deepEqual(
    queries.map(({ name, type, rcode }) => [name, type, rcode]),
    [
      ["during.ok.test", "A", "NOERROR"],
      ["during.nx.test", "TXT", "NXDOMAIN"],
    ],
  );
  assert.equal(missed, 0);
  const denied = await dns.queries("app", { since: last ?? 0, rcode: "NXDOMAIN", name: "*.NX.test" });
  assert.deepEqual(
    denied.queries.map(({ name }) => name),
    ["during.nx.test"],
  );
});

test("queries that exceed the history are counted as missed", async () => {
  const { last } = await dns.queries("app");
  const names = Array.from({ length: 400 }, (_, index) => `n${index}.ok.test`);
  // Each query once, however long it takes.
  await app.enter("dig", ["-r", "@127.0.0.11", "+tries=1", "+time=30", "+short", ...names]);
  const { queries, missed } = await dns.queries("app", { since: last ?? assert.fail() });
  assert.equal(queries.length + missed, names.length);
  assert.ok(missed > 0);
  assert.equal(queries.at(-1)?.name, "n399.ok.test");
});

test("queries are followed until the caller stops", async () => {
  await dig(app, "already.ok.test");
  const followed: QueryReport[] = [];
  for await (const each of dns.follow({ container: "app", last: 1, name: "*.ok.test" })) {
    if ("missed" in each) continue;
    followed.push(each);
    if (followed.length === 1) await dig(app, "then.ok.test");
    if (followed.length === 2) break;
  }
  assert.deepEqual(
    followed.map(({ name }) => name),
    ["already.ok.test", "then.ok.test"],
  );
  const stop = new AbortController();
  for await (const _ of dns.follow({ last: 1, signal: stop.signal })) stop.abort();
});

test("a follower of a container by its name follows also the one that has the name after it", async () => {
  const first = await runContainer(engine, { name: "anew", networks: ["n1"] });
  const followed = dns.follow({ container: "anew" })[Symbol.asyncIterator]();
  const next = async (): Promise<string | null | undefined> => {
    const { value } = await followed.next();
    return value !== undefined && "name" in value ? value.name : undefined;
  };
  await instance.waitFor("anew", "attached");
  const one = next();
  await dig(first, "one.ok.test");
  assert.equal(await one, "one.ok.test");
  await first[Symbol.asyncDispose]();
  await using again = await runContainer(engine, { name: "anew", networks: ["n1"] });
  await waitFor("the new one to be attached", async () => {
    const { id, state } = (await instance.container("anew")) ?? {};
    return id === again.id && state === "attached" ? true : undefined;
  });
  await dig(again, "two.ok.test");
  assert.equal(await next(), "two.ok.test");
  await followed.return?.();
});

test("a follower receives a query after a pause that is longer than any request timeout", async () => {
  const followed = dns.follow({ container: "app", rcode: "SERVFAIL" })[Symbol.asyncIterator]();
  const next = followed.next();
  await pause(6_000);
  await dig(app, "broken.servfail.test");
  const { value } = await next;
  assert.equal(value !== undefined && "name" in value ? value.name : undefined, "broken.servfail.test");
  await followed.return?.();
});

test("an invalid question fails at once, without waiting", async () => {
  const waiting = dns.waitUntilResolves("app", "app", { type: "NOPE", timeoutMs: 60_000 });
  await assert.rejects(waiting, { code: "BAD_QUESTION" });
});

test("an invalid HTTP request is refused, without effect on others", async () => {
  const [folder = ""] = readdirSync(instance.stateDir);
  const socket = join(instance.stateDir, folder, "control.sock");
  for (const target of ["//", "http://[", "*", "/v1/status?%", "/../v1/status"]) {
    const response = await rawRequest(socket, `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
    assert.match(response, target.startsWith("/v1/status") ? /^HTTP\/1\.1 200 / : /^HTTP\/1\.1 404 /, target);
  }
  assert.equal((await instance.waitFor("app", "attached")).state, "attached");
});

/** Everything that arrives until the connection ends. */
async function rawRequest(path: string, text: string): Promise<string> {
  const connection = createConnection(path);
  // Not `end`: Node's server takes that for the end of the client, and closes before a reply that is not ready yet.
  connection.write(text);
  let response = "";
  for await (const chunk of connection) response += String(chunk);
  return response;
}

test("connect accepts a socket path, and mistakes have their own error codes", async () => {
  const [folder = ""] = readdirSync(instance.stateDir);
  const same = await connect({ socketPath: join(instance.stateDir, folder, "control.sock") });
  assert.ok((await same.queries("app")).queries.length > 0);
  const nowhere = connect({ socketPath: join(instance.stateDir, "nowhere") });
  await assert.rejects(nowhere, { code: "NOT_RUNNING" });
  await assert.rejects(dns.queries("nobody"), { code: "NO_SUCH_CONTAINER" });
  await assert.rejects(dns.follow({ rcode: "bogus" })[Symbol.asyncIterator]().next(), { code: "BAD_RCODE" });
});

test("the names that fail, and why one does, as the commands say it; errors have a type", async () => {
  await dig(app, "nobody");
  const report = await waitFor("the failure", async () => {
    const { failures } = await dns.failures({ container: "app" });
    return failures.find(({ name }) => name === "nobody");
  });
  assert.deepEqual([report.type, report.cause?.code], ["A", "unknown-name"]);
  const { causes } = await dns.explain("app", "nobody", { type: "A" });
  assert.equal(causes[0]?.code, "unknown-name");
  const refused = await dns.explain("nosuch", "app").catch((error: unknown) => error);
  assert.ok(isClientError(refused));
  assert.equal(refused.code, "NO_SUCH_CONTAINER");
  const at = ["-H", engine.host, "--state-dir", instance.stateDir];
  const { code, stdout } = await dns11(["failures", "app", "--fail", ...at]);
  assert.equal(code, 1, stdout);
  assert.equal((await dns11(["failures", "app", ...at])).code, 0);
});

test("a lab says what it was given wrong: a fault, a container, a project", async () => {
  await using lab = await dns.lab();
  const delay = lab.fault("db", { delay: "200ms" } as never);
  await assert.rejects(delay, { code: "BAD_OPTION", message: "Invalid fault delay: use { ms: 200 }" });
  await assert.rejects(lab.asked("db", { by: "ap", within: 100 }), {
    code: "NOT_ASKED",
    message: '"db" was not queried within 100 ms: no container or service "ap" is running; did you mean "app"?',
  });
  await using other = await dns.lab({ project: "nosuch" });
  await assert.rejects(other.asked("db", { within: 100 }), /no container of the project "nosuch" is running/);
  await other.fault("db", { nxdomain: true });
  const { unused } = await other.report();
  assert.match(unused[0] ?? "", /^no container of the project "nosuch" is running/);
});
