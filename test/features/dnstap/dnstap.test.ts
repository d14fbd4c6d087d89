/**
 * Messages of containers and servers, as a reader of dnstap that others have written gets them; without names where these are hidden; and
 * that no answer depends on the reader, whether it is there, stands still, or has gone.
 */
import assert from "node:assert/strict";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";

import { dataOf, dig } from "../../support/client/dig.ts";
import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { type Dns11, replaceDns11, startDns11 } from "../../support/program/dns11.ts";
import { page } from "../../support/program/scrape.ts";
import { SharedDns11 } from "../../support/program/shared-dns11.ts";
import { makeFolder } from "../../support/rig/folder.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";
import { Reader } from "./reader.ts";

const folder = makeFolder("dnstap");
const socket = join(folder, "tap.sock");
const SERVER = "10.53.0.1";
const WEB = "172.30.0.10";
const DB = "172.30.0.11";
let files = 0;
let engine: Engine;
let upstream: Upstream;
let web: Container;
let db: Container;
let reader: Reader | undefined;
const shared = new SharedDns11(() => engine);

before(async () => {
  engine = await startEngine({ resolvConf: `nameserver ${SERVER}\n` });
  upstream = await startUpstream(engine, { address: SERVER });
  await createNetwork(engine, "n1", { subnet: "172.30.0.0/24" });
  web = await runContainer(engine, { name: "web", networks: [{ name: "n1", ip: WEB }] });
  db = await runContainer(engine, { name: "db", networks: [{ name: "n1", ip: DB }] });
});
afterEach(async () => {
  await reader?.[Symbol.asyncDispose]();
  reader = undefined;
});
after(async () => {
  await shared[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

async function startReader(): Promise<Reader> {
  return (reader = await Reader.start(socket, join(folder, `tapped${++files}`)));
}

/** What the kernel answers is not seen, so the process answers all. */
async function under(...lines: readonly string[]): Promise<Dns11> {
  return await shared.under("answers: process", ...lines);
}

/** The value of a metric; its name has labels as they are written. */
async function metric(instance: Dns11, name: string): Promise<number> {
  const [engineFolder = ""] = readdirSync(instance.stateDir);
  const { text } = await page(join(instance.stateDir, engineFolder, "control.sock"), "/metrics");
  const line = text.split("\n").find((each) => each.startsWith(`${name} `)) ?? assert.fail(`no ${name} in ${text}`);
  return Number(line.split(" ").at(-1));
}

async function connected(instance: Dns11): Promise<void> {
  await waitFor("a connection to the reader", async () =>
    (await metric(instance, "dns11_dnstap_connected")) === 1 ? true : undefined,
  );
}

async function disconnected(instance: Dns11): Promise<void> {
  await waitFor("the end of the connection", async () =>
    (await metric(instance, "dns11_dnstap_connected")) === 0 ? true : undefined,
  );
}

/** All that was seen is with the reader: dns11 says goodbye to it when it is turned off. */
async function tapped(...lines: readonly string[]): Promise<readonly string[]> {
  await under(...lines);
  return await (reader as Reader).lines();
}

/** What is said of a name: kinds, addresses and transports, each once. On a busy machine a server is asked again. */
function of(lines: readonly string[], name: string): string[] {
  return onceEach(lines.filter((line) => line.includes(`"${name}."`)).map((line) => line.replace(/ \d+b.*$/, "")));
}

/** Without the times, in the order in which each came first. */
function onceEach(lines: readonly string[]): string[] {
  return [...new Set(lines.map((line) => line.replace(/^\S+ \S+ /, "")))];
}

test("it is off at first; a reload turns it on, and the reader gets queries and answers on both sides", async () => {
  await startReader();
  await under();
  await dig(web, "before.ok.test");
  const instance = await under(`dnstap: ${socket}`);
  await connected(instance);
  assert.deepEqual(dataOf(await dig(web, "db")), [DB]);
  assert.deepEqual(dataOf(await dig(db, "web", "+tcp")), [WEB]);
  assert.deepEqual(dataOf(await dig(web, "out7.ok.test")), ["192.0.2.7"]);
  assert.deepEqual(dataOf(await dig(web, "out7.ok.test")), ["192.0.2.7"]);
  assert.equal((await dig(web, "tcp.tc.test")).status, "NOERROR");
  assert.equal((await dig(db, "gone.silent.test")).status, "SERVFAIL");
  await instance.client.explain({ name: "explained.nx.test", container: "web" });
  const lines = await tapped();
  assert.deepEqual(of(lines, "before.ok.test"), []);
  assert.deepEqual(of(lines, "db"), [`CQ ${WEB} UDP`, `CR ${WEB} UDP`]);
  assert.deepEqual(of(lines, "web"), [`CQ ${DB} TCP`, `CR ${DB} TCP`]);
  assert.deepEqual(of(lines, "out7.ok.test"), [
    ...[`CQ ${WEB} UDP`, `FQ ${SERVER} UDP`, `FR ${SERVER} UDP`, `CR ${WEB} UDP`],
  ]);
  // Once from the cache.
  const answered = lines.filter((line) => line.includes(` CR ${WEB} `) && line.includes('"out7.ok.test."'));
  assert.equal(answered.length, 2);
  const fetched = [`FQ ${SERVER} UDP`, `FR ${SERVER} UDP`, `FQ ${SERVER} TCP`, `FR ${SERVER} TCP`];
  assert.deepEqual(of(lines, "tcp.tc.test"), [`CQ ${WEB} UDP`, ...fetched, `CR ${WEB} UDP`]);
  assert.deepEqual(of(lines, "gone.silent.test"), [`CQ ${DB} UDP`, `FQ ${SERVER} UDP`, `CR ${DB} UDP`]);
  // What dns11 asks for an explanation is no query of the container.
  assert.deepEqual(of(lines, "explained.nx.test"), [`FQ ${SERVER} UDP`, `FR ${SERVER} UDP`]);
  assert.ok(
    lines.every((line) => !line.includes("dns11.invalid")),
    lines.join("\n"),
  );
  assert.equal(await metric(instance, 'dns11_dnstap_messages_total{result="written"}'), lines.length);
  assert.equal(await metric(instance, 'dns11_dnstap_messages_total{result="dropped"}'), 0);
});

test("messages are whole: ids, codes and records are those of the messages themselves", async () => {
  await startReader();
  const instance = await under(`dnstap: ${socket}`);
  await connected(instance);
  const { id } = await dig(web, "whole9.ok.test", "+dnssec");
  await under();
  const texts = (await (reader as Reader).messages()).filter((text) => text.includes("whole9.ok.test."));
  const types = ["CLIENT_QUERY", "FORWARDER_QUERY", "FORWARDER_RESPONSE", "CLIENT_RESPONSE"];
  const seen = types.map((type) => texts.filter((text) => text.includes(`  type: ${type}\n`)));
  const [[asked = ""] = [], [sent = ""] = [], [replied = ""] = [], [answered = ""] = []] = seen;
  const idOf = (text: string): number => Number(/, id: (\d+)$/m.exec(text)?.[1] ?? assert.fail(text));
  assert.deepEqual([idOf(asked), idOf(answered)], [id, id]);
  const sentIds = seen[1]?.map(idOf) ?? [];
  const queries = await upstream.queriesFor("whole9.ok.test");
  assert.deepEqual(new Set(sentIds), new Set(queries.map((query) => query.id)));
  assert.ok(sentIds.includes(idOf(replied)));
  for (const text of [replied, answered]) assert.match(text, /whole9\.ok\.test\.\s+\d+\s+IN\s+A\s+192\.0\.2\.9/);
  assert.match(sent, /response_address: "10\.53\.0\.1"\n {2}response_port: 53/);
  assert.match(answered, /query_address: "172\.30\.0\.10"/);
  const times = [asked, answered].map((text) => /query_time: !!timestamp (.*)/.exec(text)?.[1] ?? assert.fail(text));
  const ms = times.map((time) => Date.parse(`${time.replace(" ", "T")}Z`));
  assert.ok(Math.abs((ms[0] as number) - (ms[1] as number)) < 1_000, times.join(" "));
});

test("where names are hidden, nothing of them, of answers or of texts leaves", async () => {
  await startReader();
  const instance = await under(`dnstap: ${socket}`, "queries: {names: hidden}");
  await connected(instance);
  await dig(web, "secret3.ok.test", "TXT");
  await dig(web, "db");
  await dig(web, "secret.nx.test", "MX", "+subnet=10.9.9.9/32");
  const file = join(folder, `tapped${files}`);
  const lines = await tapped("queries: {names: hidden}");
  const [container, server] = [`${WEB} UDP 17b "." IN`, `${SERVER} UDP 17b "." IN`];
  assert.deepEqual(onceEach(lines), [
    ...[`CQ ${container} TXT`, `FQ ${server} TXT`, `FR ${server} TXT`, `CR ${container} TXT`],
    ...[`CQ ${container} A`, `CR ${container} A`],
    ...[`CQ ${container} MX`, `FQ ${server} MX`, `FR ${server} MX`, `CR ${container} MX`],
  ]);
  const bytes = readFileSync(file);
  for (const text of ["secret", "ok\x04test", "text of", "\x02db"]) assert.ok(!bytes.includes(text), text);
  assert.ok(!bytes.includes(Buffer.from([10, 9, 9, 9])));
  // Hiding them takes effect by a reload, for clients that are open.
  await startReader();
  await connected(await under(`dnstap: ${socket}`));
  await dig(web, "shown.ok.test");
  const hiding = await under(`dnstap: ${socket}`, "queries: {names: hidden}");
  await dig(web, "secret4.ok.test");
  assert.ok(hiding.isRunning);
  const mixed = await tapped("queries: {names: hidden}");
  assert.equal(of(mixed, "shown.ok.test").length, 4);
  assert.ok(mixed.every((line) => !line.includes("secret")));
});

test("without a reader, with one that stands still, and with one that is killed, answers come", async () => {
  const instance = await under(`dnstap: ${socket}`);
  const dropped = async (): Promise<number> => await metric(instance, 'dns11_dnstap_messages_total{result="dropped"}');
  assert.deepEqual(dataOf(await dig(web, "alone1.ok.test")), ["192.0.2.1"]);
  await instance.logs(/the reader of dnstap is away, trying again/);
  await startReader();
  await connected(instance);
  // It reads no more, and what waits for it has its bound.
  reader?.signal("SIGSTOP");
  const droppedBefore = await dropped();
  const questions = join(folder, "questions");
  writeFileSync(questions, "db A\n");
  const flood = ["-d", questions, "-c", "4", "-Q", "20000", "-l", "1", "-s", "127.0.0.11"];
  await waitFor("dropped messages", async () => {
    const { code, stderr } = await web.enter("dnsperf", flood);
    assert.equal(code, 0, stderr);
    return (await dropped()) > droppedBefore ? true : undefined;
  });
  assert.deepEqual(dataOf(await dig(db, "web")), [WEB]);
  reader?.signal("SIGKILL");
  await reader?.[Symbol.asyncDispose]();
  await disconnected(instance);
  assert.deepEqual(dataOf(await dig(db, "web")), [WEB]);
  // The next one gets whole messages.
  await startReader();
  await connected(instance);
  await dig(web, "again5.ok.test");
  const lines = await tapped();
  assert.equal(of(lines, "again5.ok.test").length, 4);
});

test("a process that takes over goes on writing, and the old one says goodbye", async () => {
  await shared.stop();
  await startReader();
  const settings = { dnstap: socket };
  await using first = await startDns11(engine, { settings });
  await connected(first);
  await dig(web, "take1.ok.test");
  await using second = await replaceDns11(engine, first, { settings });
  await connected(second);
  await dig(web, "take2.ok.test");
  await second.stop();
  const lines = await (reader as Reader).lines();
  for (const name of ["take1.ok.test", "take2.ok.test"]) assert.equal(of(lines, name).length, 4, lines.join("\n"));
});

test("in strict mode it sees the same", async () => {
  await startReader();
  const instance = await under(`dnstap: ${socket}`, "strict: true");
  await connected(instance);
  await dig(web, "strict6.ok.test");
  await dig(web, "strict7.ok.test", "+tcp");
  const lines = await tapped("strict: true");
  for (const [name, transport] of [
    ["strict6.ok.test", "UDP"],
    ["strict7.ok.test", "TCP"],
  ] as const) {
    const seen = of(lines, name).map((line) => line.replace(/^(F.) \S+/, "$1"));
    assert.deepEqual(seen, [
      ...[`CQ ${WEB} ${transport}`, `FQ ${transport}`, `FR ${transport}`, `CR ${WEB} ${transport}`],
    ]);
  }
});
