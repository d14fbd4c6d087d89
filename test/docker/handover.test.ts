/**
 * Taking over and giving back, under load: a container has Docker's resolver before dns11 comes and has it again the
 * moment dns11 goes, however it goes. Counted by clients inside the container that never stop asking.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { stdoutOf } from "../support/program/command.ts";
import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { dataOf, dig } from "../support/asking/dig.ts";
import { Dns11, startDns11 } from "../support/program/dns11.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { type LoadReport, failuresAfter, load } from "../support/asking/load.ts";
import { inTime, pause, waitFor } from "../support/rig/wait.ts";

const PER_SECOND = 2_000;
const FOR_MS = 4_000;
const LONG_MS = 10_000;
const KEPT_PER_SECOND = 100;
/** How often a flood reads its questions through; its time is over before. */
const FLOOD_TIMES = 5_000_000;
/** What the design allows to be refused around the moment itself. */
const GRACE_MS = 100;

let engine: Engine;
let web: Container;
let client: Container;

before(async () => {
  engine = await startEngine();
  await createNetwork(engine, "n1");
  web = await runContainer(engine, { name: "web", networks: ["n1"] });
  client = await runContainer(engine, { name: "client", networks: ["n1"] });
});
after(async () => await engine[Symbol.asyncDispose]());

/** Two clients ask all the time; `act` happens in the middle of it. Returns what the clients saw. */
async function whileAsking(act: () => Promise<void> | void, forMs = FOR_MS): Promise<{ reports: LoadReport[] }> {
  const name = "web";
  const clients = [
    load(client, { name, perSecond: PER_SECOND, forMs }),
    load(client, { name, perSecond: KEPT_PER_SECOND, forMs, isKept: true }),
  ];
  await pause(1_000);
  await act();
  return { reports: await Promise.all(clients) };
}

function assertServed(reports: readonly LoadReport[], sinceMs: number): void {
  const [fresh, kept] = reports;
  assert.ok(fresh !== undefined && fresh.asked > (PER_SECOND * FOR_MS) / 2000, "the load was really there");
  assert.ok(kept !== undefined && kept.answered > 0, "the kept socket was really answered");
  for (const report of reports) assert.deepEqual(failuresAfter(report, sinceMs), []);
}

test("taking over loses no query, neither of fresh sockets nor of one that is kept", async () => {
  await using dns11 = new Dns11(engine.host);
  dns11.kill("SIGSTOP");
  // It begins in the middle of the load, however long a busy machine takes to start it.
  const { reports } = await whileAsking(async () => {
    dns11.kill("SIGCONT");
    await dns11.waitUntilReady();
  }, LONG_MS);
  assertServed(reports, 0);
  const counters = (await dns11.container("client"))?.counters;
  assert.ok((counters?.["local"] ?? 0) > PER_SECOND / 2, `${counters?.["local"]} queries came to dns11`);
});

test("SIGTERM hands back without losing a query, and nothing is left", async () => {
  await using dns11 = await startDns11(engine);
  const { reports } = await whileAsking(async () => assert.equal(await dns11.stop(), 0));
  assertServed(reports, 0);
  assert.doesNotMatch((await client.enter("nft", ["list", "ruleset"])).stdout, /dns11/);
});

test("SIGTERM in the middle of a flood drains: the neighbour loses nothing, and nothing is left", async () => {
  await using dns11 = await startDns11(engine);
  const questions = join(engine.folder, "flood");
  writeFileSync(questions, "web A\n");
  const bounds = ["-l", String(FOR_MS / 1000), "-n", String(FLOOD_TIMES)];
  const flood = web.enter("dnsperf", ["-s", "127.0.0.11", "-d", questions, "-c", "8", "-q", "1000", ...bounds]);
  let flooded = 0;
  const { reports } = await whileAsking(async () => {
    flooded = (await dns11.container("web"))?.counters?.["local"] ?? 0;
    assert.equal(await dns11.stop(), 0);
  });
  assert.ok(flooded > PER_SECOND * 5, `only ${flooded} queries had come when it was told to stop`);
  assertServed(reports, 0);
  for (const container of [client, web]) {
    assert.doesNotMatch((await container.enter("nft", ["list", "ruleset"])).stdout, /dns11/);
  }
  assert.match(stdoutOf(await flood, "dnsperf"), /NOERROR \d+ \(100\.00%\)/);
});

test("SIGKILL hands back: nothing is refused after the first 100 ms, and Docker answers", async () => {
  await using dns11 = await startDns11(engine);
  // On a busy machine it takes the kernel a while to end a process; what it owes us begins then.
  let endMs = 0;
  const { reports } = await whileAsking(async () => {
    dns11.kill("SIGKILL");
    await dns11.exited;
    endMs = Date.now();
  });
  assertServed(reports, endMs + GRACE_MS);
  const [fresh, kept] = reports.map((report) => failuresAfter(report, 0).length);
  console.log(`SIGKILL under ${PER_SECOND} queries/s: ${fresh} fresh and ${kept} kept queries lost in all`);
  const reply = await dig(client, "web");
  assert.deepEqual(dataOf(reply), [web.address("n1")]);
  assert.equal(reply.answer[0]?.ttl, 600, "Docker's own TTL");
});

test("a wedged event loop is ended by its keeper, and the namespaces are handed back", async () => {
  const wedge = new URL("../support/program/wedge-main.js", import.meta.url).href;
  await using dns11 = await startDns11(engine, { env: { NODE_OPTIONS: `--import=${wedge}` } });
  dns11.kill("SIGUSR2");
  // On a busy machine the alarm may come first: it counts all time, the keeper what the loop had of it.
  assert.match(String(await inTime(dns11.exited, "the end", 15_000)), /^SIG(KILL|ALRM)$/);
  assert.equal((await dig(client, "+time=1", "+tries=5", "web")).answer[0]?.ttl, 600, "Docker's own TTL");
});

test("without a keeper a wedged event loop is ended by the alarm, and the namespaces are handed back", async () => {
  const wedge = new URL("../support/program/wedge-main.js", import.meta.url).href;
  const env = { NODE_OPTIONS: `--import=${wedge}` };
  await using dns11 = await startDns11(engine, { env, args: ["--keeper", "off"] });
  dns11.kill("SIGUSR2");
  assert.ok((await dig(client, "+time=1", "web")).timedOut, "a wedged process answers nobody");
  assert.equal(await inTime(dns11.exited, "the alarm", 15_000), "SIGALRM");
  assert.equal((await dig(client, "web")).answer[0]?.ttl, 600, "Docker's own TTL");
});

test("a crash at any moment of attaching leaves Docker's resolver answering and no rules behind", async () => {
  for (let round = 0; round < 12; round++) {
    await using dns11 = new Dns11(engine.host);
    await waitFor("dns11 to begin", () => (dns11.log.includes("serving") ? true : undefined), { everyMs: 1 });
    await pause(round * 2);
    dns11.kill("SIGKILL");
    await dns11.exited;
    assert.equal((await dig(client, "web")).answer[0]?.ttl, 600, `killed ${round * 2} ms after it began to serve`);
    assert.doesNotMatch((await client.enter("nft", ["list", "ruleset"])).stdout, /dns11/);
  }
});

test("starting again at once serves again, in a zone of its own", async () => {
  await using first = await startDns11(engine);
  first.kill("SIGKILL");
  await first.exited;
  await using second = await startDns11(engine, { stateDir: first.stateDir });
  assert.equal((await second.container("client"))?.state, "attached");
  const report = await load(client, { name: "web", perSecond: PER_SECOND, forMs: 1_000 });
  assert.deepEqual(failuresAfter(report, 0), []);
});
