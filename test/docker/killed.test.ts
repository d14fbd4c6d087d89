/**
 * Repeated kills and restarts while a container sends queries: in between Docker's resolver answers, no query is lost but
 * around a kill, and afterwards no descriptor, process or rule is left.
 */
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { after, before, test } from "node:test";

import type { Container } from "../support/engine/container.ts";
import { dig } from "../support/client/dig.ts";
import { droppedIn, type QueryEnd, QueryLoop } from "../support/client/query-loop.ts";
import type { Engine } from "../support/engine/engine.ts";
import { startPair } from "../support/engine/pair.ts";
import { Dns11 } from "../support/program/dns11.ts";
import { isAlive } from "../support/program/main-with-keeper.ts";
import { waitFor } from "../support/rig/wait.ts";

/** `make keeper` runs a thousand rounds. */
const TIMES = Number(process.env["KEEPER_TIMES"] ?? 1) * 5;
/** Rounds during one client, whose results are kept until it ends. */
const ROUNDS_OF_LOAD = 20;
const LOAD_MS_MAX = 600_000;
const PER_SECOND = 200;
const REPORT_EVERY = 100;
/** In turn: where the kernel answers, a client may not notice a kill at all. */
const ANSWERS = ["auto", "process"] as const;

const OUR_TTL = 5;
const DOCKERS_TTL = 600;

/** From dns11's last answer to a dig until Docker's resolver has answered: in between, queries may be lost. */
interface Gap {
  readonly beginMs: number;
  readonly endMs: number;
}

let engine: Engine;
let web: Container;
let client: Container;
/** The first instance owns the state folder. */
let first: Dns11 | undefined;
/** Of each kind of answers. */
const descriptors = ANSWERS.map((): number[] => []);

before(async () => ({ engine, web, client } = await startPair()));
after(async () => {
  await first?.[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

test(`killed and restarted ${TIMES} times: queries are lost only around a kill, and nothing leaks`, async (context) => {
  const all = { sent: 0, lost: 0, gapMs: 0 };
  for (let done = 0; done < TIMES;) {
    const rounds = Math.min(ROUNDS_OF_LOAD, TIMES - done);
    const gaps: Gap[] = [];
    const droppedBefore = await droppedIn(client);
    await using load = await QueryLoop.start(client, { name: "web", perSecond: PER_SECOND }, LOAD_MS_MAX);
    for (let round = 0; round < rounds; round++) gaps.push(await killAndRestart(round % ANSWERS.length));
    const ends = await load.stop();
    assertLostOnlyIn(gaps, ends, (await droppedIn(client)) - droppedBefore);
    all.sent += ends.length;
    all.lost += ends.filter(isLost).length;
    all.gapMs = Math.max(all.gapMs, ...gaps.map(({ beginMs, endMs }) => endMs - beginMs));
    done += rounds;
    if (done % REPORT_EVERY === 0) console.log(`killed ${done} times: ${JSON.stringify(all)}`);
  }
  context.diagnostic(
    `${TIMES} kills: ${all.lost} of ${all.sent} queries lost, at most ${all.gapMs} ms until Docker answered`,
  );
  for (const counts of descriptors) {
    const [least, most] = [Math.min(...counts), Math.max(...counts)];
    assert.ok(most - least < 8, `between ${least} and ${most} descriptors`);
  }
});

async function killAndRestart(kind: number): Promise<Gap> {
  const env = { DNS11_ANSWERS: ANSWERS[kind] ?? "" };
  const dns11 = new Dns11(engine.host, { env, ...(first !== undefined && { stateDir: first.stateDir }) });
  first ??= dns11;
  await dns11.waitUntilReady();
  const { keeper } = await waitFor("its keeper", async () => {
    const status = await dns11.status();
    return status.keeper.state === "watching" && status.keeper.namespaces === 2 ? status : undefined;
  });
  // The kernel's programs, and the thread that attaches them, have descriptors as well.
  await dns11.waitForKernel();
  const beginMs = Date.now();
  for (const container of [client, web]) assert.equal(await ttlIn(container), OUR_TTL);
  descriptors[kind]?.push(readdirSync(`/proc/${dns11.pid}/fd`).length);
  dns11.kill("SIGKILL");
  for (const container of [client, web])
    await waitFor("Docker's answer", async () => ((await ttlIn(container)) === DOCKERS_TTL ? true : undefined));
  const endMs = Date.now();
  await dns11.ended();
  await waitFor("its keeper to end", () => (isAlive(keeper.pid ?? 0) ? undefined : true));
  assert.doesNotMatch((await client.enter("nft", ["list", "tables"])).stdout, /dns11/);
  return { beginMs, endMs };
}

/** Both containers know both names. */
async function ttlIn(container: Container): Promise<number | undefined> {
  return (await dig(container, "+time=1", "+tries=10", "web")).answer[0]?.ttl;
}

function isLost({ outcome }: QueryEnd): boolean {
  return outcome !== "NOERROR";
}

/** `dropped`: packets that the kernel has dropped for want of room, as it does on a busy machine. */
function assertLostOnlyIn(gaps: readonly Gap[], ends: readonly QueryEnd[], dropped: number): void {
  assert.ok(ends.length > gaps.length, "queries were sent");
  const outside = ends.filter(
    (end) => isLost(end) && !gaps.some(({ beginMs, endMs }) => end.atMs >= beginMs && end.atMs <= endMs),
  );
  assert.ok(outside.length <= dropped, `${JSON.stringify(outside)}, gaps ${JSON.stringify(gaps)}, ${dropped} dropped`);
}
