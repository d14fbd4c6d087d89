// Turns of the servers: at any time queries reach only one of them. dns11 is started for its turn and stopped after it,
// so that its rules do not cost the others anything.

import { startDns11 } from "../support/program/dns11.ts";
import type { Bench } from "./bench.ts";
import { redirectTo } from "./redirect.ts";
import type { Testbed } from "./testbed.ts";
import { SERVERS, type Server } from "./server.ts";

// Process id of the server in a testbed; the other name servers have one process per testbed. Undefined if this server
// does not run there. `isFresh`: it has just been started.
export type Turn = {
  readonly server: Server;
  readonly isFresh: boolean;
  readonly pidAt: (testbed: Testbed | undefined) => number | undefined;
};

type Rounds = { readonly what: string; readonly testbeds?: readonly Testbed[] };

// Several rounds, so that a temporary disturbance does not hit one server only.
export async function takeRounds(
  bench: Bench,
  { what, testbeds = [] }: Rounds,
  visit: (turn: Turn, round: number) => Promise<void>,
): Promise<void> {
  const { rounds } = bench.pace;
  for (let round = 0; round < rounds && hasTimeFor(round, bench); round++) {
    console.error(`bench: ${what}, round ${round + 1} of ${rounds}`);
    await takeTurns(bench, testbeds, async (turn) => await visit(turn, round));
  }
}

export function hasTimeFor(round: number, { endMs }: Bench): boolean {
  if (round === 0 || performance.now() < endMs) return true;
  console.error(`bench: no time for more than ${round} of them`);
  return false;
}

async function takeTurns(
  { engine, ours }: Bench,
  testbeds: readonly Testbed[],
  visit: (turn: Turn) => Promise<void>,
): Promise<void> {
  for (const server of SERVERS) {
    const rivalAt = (testbed: Testbed | undefined) => testbed?.rivals.all.find((rival) => rival.server === server);
    if (testbeds.every((testbed) => rivalAt(testbed) === undefined)) continue;
    for (const testbed of testbeds) await redirectTo(testbed.client, rivalAt(testbed)?.port);
    await visit({ server, isFresh: false, pidAt: (testbed) => rivalAt(testbed)?.pid });
  }
  for (const testbed of testbeds) await redirectTo(testbed.client, undefined);
  await visit({ server: "dockerd", isFresh: false, pidAt: () => engine.pid });
  for (const { server, settings, env } of ours) {
    await using instance = await startDns11(engine, { settings, ...(env !== undefined && { env }) });
    await instance.waitForKernel();
    await visit({ server, isFresh: true, pidAt: () => instance.pid });
    await instance.stop();
  }
}
