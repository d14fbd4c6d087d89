/**
 * dns11 with the Node that its packages bring, which is newer than the oldest one that it works with. From Node 22 on, the event loop has
 * an io_uring, and aborts where it may not enter that any more.
 */
import assert from "node:assert/strict";
import { readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { dataOf, dig } from "../support/client/dig.ts";
import { createNetwork, runContainer } from "../support/engine/container.ts";
import { startEngine } from "../support/engine/engine.ts";
import { PROGRAM } from "../support/program/built.ts";
import { lockedPackages } from "../support/program/locked-packages.ts";
import { replaceDns11, startDns11 } from "../support/program/dns11.ts";
import { waitFor } from "../support/rig/wait.ts";

const LOCK = "scripts/release/node";
const DOCKERS_TTL = 600;
const DNS11S_TTL = 5;

/** The release brings the same. */
async function newerNode(): Promise<string> {
  const name = `node-linux-${process.arch}`;
  const folder = await lockedPackages(LOCK, (packages) => `node-${packages[name]}`);
  return join(folder, "node_modules", name, "bin", "node");
}

/** A descriptor that is closed between the list and the look is none. */
function ringsOf(pid: number): number {
  const folder = `/proc/${pid}/fd`;
  const isRing = (fd: string): boolean => {
    try {
      return readlinkSync(join(folder, fd)).includes("[io_uring]");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
      throw error;
    }
  };
  return readdirSync(folder).filter(isRing).length;
}

test("it serves, is replaced, and hands back after SIGKILL", async () => {
  const node = await newerNode();
  await using engine = await startEngine({ suite: "bookworm" });
  await createNetwork(engine, "n1");
  const web = await runContainer(engine, { name: "web", networks: ["n1"] });
  const other = await runContainer(engine, { name: "other", networks: ["n1"] });
  const answer = async (...options: readonly string[]): Promise<readonly [string | undefined, number | undefined]> => {
    const reply = await dig(web, "other", ...options);
    return [dataOf(reply)[0], reply.answer[0]?.ttl];
  };
  const options = { program: [node, PROGRAM], stateDir: join(engine.folder, "state") };
  await using first = await startDns11(engine, options);
  await first.waitFor("web", "attached");
  await first.waitForKernel();
  assert.deepEqual(await answer(), [other.address("n1"), DNS11S_TTL]);
  const { keeper } = await first.status();
  assert.deepEqual(
    [ringsOf(first.pid) > 0, ringsOf(keeper.pid ?? 0)],
    [true, 0],
    "the keeper may open no socket, by no way",
  );
  await using second = await replaceDns11(engine, first, options);
  assert.deepEqual(await answer(), [other.address("n1"), DNS11S_TTL]);
  second.kill("SIGKILL");
  // A query may be lost until the rules are gone.
  const byDocker = async (): Promise<boolean> => (await answer("+time=1", "+tries=1"))[1] === DOCKERS_TTL;
  await waitFor("Docker's resolver to answer", async () => ((await byDocker()) ? true : undefined));
});
