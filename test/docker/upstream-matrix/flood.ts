// A flood of queries that servers do not answer (B52): more at once than a container may have in flight. A query holds its
// slot for four seconds per server and waits for a slot no longer than that. So the first query without a slot still gets
// one, just in time, and only queries after a whole second round are refused. Which ones they are depends on how the threads
// of an engine are scheduled; how many they are does not.

import { fileURLToPath } from "node:url";

import type { Container } from "../../support/engine/container.ts";
import { stdoutOf } from "../../support/program/command.ts";
import { pause } from "../../support/rig/wait.ts";
import type { FloodOutcome } from "./flood-main.ts";

const SLOTS = 1024;
const ROUNDS = 2;
// More than may be lost on the way, because the flood arrives faster than a busy machine reads.
const SPARE = 300;
// Queries of the rows before the flood may still hold some slots.
export const TOO_MANY = SPARE + 100;
// After the four seconds of queries that wait for a slot, and before the eight of queries that wait for a second one.
const WAIT_MS = 6_000;
// A flood that takes as long as a query holds its slot finds free slots, so it shows nothing and is repeated.
const SENDING_MAX_MS = 3_000;
const TRIES = 5;
// Until no query of the flood before holds a slot or waits for one: four servers, four seconds each, and the waiting.
const QUIET_MS = 40_000;

// Returns how many queries of the flood were refused.
export async function countRefused(container: Container, port: number): Promise<number> {
  const program = fileURLToPath(new URL("./flood-main.js", import.meta.url));
  const args = [program, `${port}`, `${SLOTS * ROUNDS + SPARE}`, `${WAIT_MS}`];
  for (let tries = 1; ; tries++) {
    const result = await container.enter(process.execPath, args);
    const { refused, sendingMs } = JSON.parse(stdoutOf(result, "the flood")) as FloodOutcome;
    if ((refused > 0 && sendingMs <= SENDING_MAX_MS) || tries === TRIES) return refused;
    await pause(QUIET_MS);
  }
}
