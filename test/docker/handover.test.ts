/**
 * Taking over and giving back, under load: a container has Docker's resolver before dns11 comes and has it again the
 * moment dns11 goes, however it goes. Counted by clients inside the container that never stop asking.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { stdoutOf } from "../support/program/command.ts";
import type { Container } from "../support/engine/container.ts";
import { dataOf, dig } from "../support/client/dig.ts";
import { Dns11, startDns11 } from "../support/program/dns11.ts";
import type { Engine } from "../support/engine/engine.ts";
import { startPair } from "../support/engine/pair.ts";
import { failuresAfter, outcomesOf, type QueryEnd, QueryLoop, queryLoop } from "../support/client/query-loop.ts";
import { inTime, pause, waitFor } from "../support/rig/wait.ts";

const PER_SECOND = 1_000;
const KEPT_PER_SECOND = 100;
/** The clients ask so long before and after what happens. */
const LONGER_MS = 1_000;
/** How many questions a flood has, and how many of them have come when dns11 is told to end. */
const FLOOD = { all: 40_000, begun: 10_000 };
/** Beside a flood a process that waits for its turn may not find a socket full: that is the flood's doing, not the end's. */
const BESIDE_FLOOD_PER_SECOND = 200;

const DOCKERS_TTL = 600;

let engine: Engine;
let web: Container;
let client: Container;

before(async () => ({ engine, web, client } = await startPair()));
after(async () => await engine[Symbol.asyncDispose]());

type Clients = { readonly fresh: readonly QueryEnd[]; readonly kept: readonly QueryEnd[] };

/** Two clients ask all the time; `act` happens in the middle of it. Returns what the clients saw. */
async function whileAsking(act: () => Promise<void>, perSecond = PER_SECOND): Promise<Clients> {
  await using fresh = await QueryLoop.start(client, { name: "web", perSecond });
  await using kept = await QueryLoop.start(client, { name: "web", perSecond: KEPT_PER_SECOND, sourcePort: "any" });
  await pause(LONGER_MS);
  await act();
  await pause(LONGER_MS);
  return { fresh: await fresh.stop(), kept: await kept.stop() };
}

function assertServed({ fresh, kept }: Clients, sinceMs = 0): void {
  for (const ends of [fresh, kept]) {
    assert.deepEqual(failuresAfter(ends, sinceMs), []);
    assert.ok((outcomesOf(ends, sinceMs)["NOERROR"] ?? 0) > KEPT_PER_SECOND / 2, "it was really asked");
  }
}

async function assertNothingLeft(...containers: readonly Container[]): Promise<void> {
  for (const container of containers) {
    assert.doesNotMatch((await container.enter("nft", ["list", "ruleset"])).stdout, /dns11/);
  }
}

test("taking over loses no query, neither of fresh sockets nor of one that is kept", async () => {
  // With all its rights, which it gives up by becoming itself anew.
  let dns11: Dns11 | undefined;
  try {
    const clients = await whileAsking(async () => {
      dns11 = await startDns11(engine, { prefix: [] });
      await localQueries(dns11, "client", PER_SECOND);
    });
    assertServed(clients);
  } finally {
    await dns11?.[Symbol.asyncDispose]();
  }
});

test("SIGTERM hands back without losing a query, and nothing is left", async () => {
  await using dns11 = await startDns11(engine);
  assertServed(await whileAsking(async () => assert.equal(await dns11.stop(), 0)));
  await assertNothingLeft(client);
});

test("SIGTERM in the middle of a flood drains: the neighbour loses nothing, and nothing is left", async () => {
  await using dns11 = await startDns11(engine);
  const questions = join(engine.folder, "flood");
  writeFileSync(questions, "web A\n");
  const bounds = ["-n", String(FLOOD.all), "-l", "100", "-t", "30"];
  const flood = web.enter("dnsperf", ["-s", "127.0.0.11", "-d", questions, "-c", "8", "-q", "1000", ...bounds]);
  const clients = await whileAsking(async () => {
    await localQueries(dns11, "web", FLOOD.begun);
    assert.equal(await dns11.stop(), 0);
  }, BESIDE_FLOOD_PER_SECOND);
  assertServed(clients);
  await assertNothingLeft(client, web);
  assert.match(stdoutOf(await flood, "dnsperf"), /NOERROR \d+ \(100\.00%\)/);
});

test("SIGKILL hands back: once Docker answers, nothing is lost any more", async (context) => {
  await using dns11 = await startDns11(engine);
  let handedBackMs = 0;
  const clients = await whileAsking(async () => {
    dns11.kill("SIGKILL");
    await dns11.exited;
    await waitFor("Docker's own TTL", async () =>
      (await dig(client, "web", "+time=1")).answer[0]?.ttl === DOCKERS_TTL ? true : undefined,
    );
    handedBackMs = Date.now();
  });
  assertServed(clients, handedBackMs);
  const [fresh, kept] = [clients.fresh, clients.kept].map((ends) => failuresAfter(ends, 0).length);
  context.diagnostic(`SIGKILL under ${PER_SECOND} queries/s: ${fresh} fresh and ${kept} kept queries lost in all`);
  assert.deepEqual(dataOf(await dig(client, "web")), [web.address("n1")]);
});

/** Until so many of a container's queries have been answered from what is known here. */
async function localQueries(dns11: Dns11, name: string, count: number): Promise<void> {
  await waitFor(`${count} queries of ${name}`, async () =>
    ((await dns11.container(name))?.counters?.["local"] ?? 0) > count ? true : undefined,
  );
}

test("a wedged event loop is ended by its keeper, and the namespaces are handed back", async () => {
  const wedge = new URL("../support/program/wedge-main.js", import.meta.url).href;
  await using dns11 = await startDns11(engine, { env: { NODE_OPTIONS: `--import=${wedge}` } });
  dns11.kill("SIGWINCH");
  // On a busy machine the alarm may come first: it counts all time, the keeper what the loop had of it.
  assert.match(String(await inTime(dns11.exited, "the end")), /^SIG(KILL|ALRM)$/);
  assert.equal((await dig(client, "+time=1", "+tries=5", "web")).answer[0]?.ttl, DOCKERS_TTL);
});

test("without a keeper a wedged event loop is ended by the alarm, and the namespaces are handed back", async () => {
  const wedge = new URL("../support/program/wedge-main.js", import.meta.url).href;
  const env = { NODE_OPTIONS: `--import=${wedge}` };
  await using dns11 = await startDns11(engine, { env, args: ["--keeper", "off"] });
  dns11.kill("SIGWINCH");
  assert.ok((await dig(client, "+time=1", "web")).timedOut, "a wedged process answers nobody");
  assert.equal(await inTime(dns11.exited, "the alarm"), "SIGALRM");
  assert.equal((await dig(client, "web", "+time=1", "+tries=3")).answer[0]?.ttl, DOCKERS_TTL);
});

test("a crash at any moment of attaching leaves Docker's resolver answering and no rules behind", async () => {
  for (let round = 0; round < 12; round++) {
    await using dns11 = new Dns11(engine.host);
    await waitFor("dns11 to begin", () => (dns11.log.includes("serving") ? true : undefined), { everyMs: 1 });
    await pause(round * 2);
    dns11.kill("SIGKILL");
    await dns11.exited;
    assert.equal(
      (await dig(client, "web", "+time=1", "+tries=3")).answer[0]?.ttl,
      DOCKERS_TTL,
      `killed ${round * 2} ms after it began to serve`,
    );
    assert.doesNotMatch((await client.enter("nft", ["list", "ruleset"])).stdout, /dns11/);
  }
});

test("starting again at once serves again, in a zone of its own", async () => {
  await using first = await startDns11(engine);
  first.kill("SIGKILL");
  await first.exited;
  await using second = await startDns11(engine, { stateDir: first.stateDir });
  assert.equal((await second.container("client"))?.state, "attached");
  const ends = await queryLoop(client, { name: "web", perSecond: PER_SECOND, forMs: LONGER_MS });
  assert.deepEqual(Object.keys(outcomesOf(ends)), ["NOERROR"]);
});
