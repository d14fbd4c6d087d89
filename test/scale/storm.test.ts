/**
 * Very many containers over real namespaces: half of them die and start in new namespaces within seconds. At the end
 * each is served in its namespace, resolves the others to their new addresses, and nothing is left in the old ones. The
 * engine is scripted, because a real one starts six containers a second here. STORM_CONTAINERS=1000 is the full size.
 */
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { after, before, test } from "node:test";

import { removeNetnses, makeNetnses } from "../bench/namespaces.ts";
import { run } from "../support/program/command.ts";
import { dataOf, dig } from "../support/client/dig.ts";
import { type Dns11, startDns11 } from "../support/program/dns11.ts";
import { inNetns, type NetworkContext } from "../support/rig/netns.ts";
import { ScriptedEngine } from "../support/scripted/scripted-engine.ts";
import { waitFor } from "../support/rig/wait.ts";

const COUNT = Number(process.env["STORM_CONTAINERS"] ?? 200);
const STORM = COUNT / 2;
/** Some that stay, and some that start again. */
const CHECKED = [0, 1, STORM - 1, STORM, COUNT - 1].map((index) => `c${index}`);
/** A busy machine attaches three containers a second. */
const SETTLED_MS = 400_000;

let engine: ScriptedEngine;
let instance: Dns11;
let paths: readonly string[] = [];
const placeOf = new Map<string, { readonly path: string; readonly address: string }>();

before(async () => {
  paths = makeNetnses(COUNT + STORM);
  engine = await ScriptedEngine.start();
  for (let index = 0; index < COUNT; index++) start(index, index);
  instance = await startDns11(engine, { readyMs: SETTLED_MS });
});
after(async () => {
  await instance[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
  removeNetnses(paths);
});

/** Starts container `index` in namespace `place`. */
function start(index: number, place: number): void {
  const path = paths[place] ?? assert.fail();
  const address = `10.${1 + (place >> 16)}.${(place >> 8) & 255}.${place & 255}`;
  placeOf.set(`c${index}`, { path, address });
  engine.run({ name: `c${index}`, path, address, aliases: ["shared"] });
}

function inside(name: string): NetworkContext {
  const path = placeOf.get(name)?.path ?? assert.fail();
  return {
    enter: async (command, args = [], options) => {
      const [first = "", ...rest] = inNetns(path, command, args);
      return await run(first, rest, options);
    },
  };
}

async function untilSettled(): Promise<void> {
  await waitFor(
    "all containers to be attached",
    async () => {
      const { containers } = await instance.status();
      const attached = containers.filter(({ state }) => state === "attached");
      return attached.length === COUNT ? true : undefined;
    },
    { timeoutMs: SETTLED_MS, everyMs: 500 },
  );
}

function descriptors(): number {
  return readdirSync(`/proc/${instance.pid}/fd`).length;
}

async function checkResolution(names: readonly string[]): Promise<void> {
  for (const name of names) {
    const [from, to] = [name, names[(names.indexOf(name) + 1) % names.length] ?? assert.fail()];
    assert.deepEqual(dataOf(await dig(inside(from), to)), [placeOf.get(to)?.address], `${from} queries ${to}`);
  }
}

test(`${COUNT} containers are attached and resolve each other`, async () => {
  await untilSettled();
  await checkResolution(CHECKED);
});

test("after half of them restart in new namespaces all are served and resolve to their new addresses", async () => {
  const before_ = descriptors();
  for (let index = 0; index < STORM; index++) {
    engine.die(`c${index}`);
    start(index, COUNT + index);
    // In bursts, as real events arrive, not one per turn of the event loop.
    if (index % 50 === 49) await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await waitFor("the last container to resolve", async () =>
    dataOf(await dig(inside(`c${COUNT - 1}`), `c${STORM - 1}`))[0] === placeOf.get(`c${STORM - 1}`)?.address
      ? true
      : undefined,
  );
  await untilSettled();
  await checkResolution(CHECKED);
  const left = await run("nsenter", [`--net=${paths[0] ?? ""}`, "nft", "list", "tables"]);
  assert.equal(left.stdout, "", "nothing is left in a namespace without a container");
  await waitFor("descriptors to be closed", () => (descriptors() <= before_ + 50 ? true : undefined));
});

test("a shared alias resolves to all addresses, truncated to what fits", async () => {
  const reply = await dig(inside("c7"), "shared", "+tcp");
  assert.equal(new Set(dataOf(reply)).size, COUNT);
  const short = await dig(inside("c7"), "shared", "+ignore", "+notcp", "+noedns");
  assert.ok(short.flags.has("tc"));
});
