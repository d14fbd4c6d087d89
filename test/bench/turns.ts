// Turns of the servers: at any time queries reach only one of them. dns11 is started for its turn and stopped after it,
// so that its rules do not cost the others anything.

import { startDns11 } from "../support/program/dns11.ts";
import type { Engine } from "../support/engine/engine.ts";
import { redirectTo } from "./redirect.ts";
import type { Testbed } from "./testbed.ts";
import { SERVERS, type Server } from "./server.ts";

// Process id of the server in a testbed; the other name servers have one process per testbed. Undefined if this server
// does not run there.
export type Turn = { readonly server: Server; readonly pidAt: (testbed: Testbed | undefined) => number | undefined };

export type Rounds = { readonly what: string; readonly count: number; readonly testbeds?: readonly Testbed[] };

// Several rounds, so that a temporary disturbance does not hit one server only.
export async function takeRounds(
  engine: Engine,
  { what, count, testbeds = [] }: Rounds,
  visit: (turn: Turn, round: number) => Promise<void>,
): Promise<void> {
  for (let round = 0; round < count; round++) {
    console.error(`bench: ${what}, round ${round + 1} of ${count}`);
    await takeTurns(engine, testbeds, async (turn) => await visit(turn, round));
  }
}

async function takeTurns(
  engine: Engine,
  testbeds: readonly Testbed[],
  visit: (turn: Turn) => Promise<void>,
): Promise<void> {
  for (const server of SERVERS) {
    const rivalAt = (testbed: Testbed | undefined) => testbed?.rivals.all.find((rival) => rival.server === server);
    if (testbeds.every((testbed) => rivalAt(testbed) === undefined)) continue;
    for (const testbed of testbeds) await redirectTo(testbed.client, rivalAt(testbed)?.port);
    await visit({ server, pidAt: (testbed) => rivalAt(testbed)?.pid });
  }
  for (const testbed of testbeds) await redirectTo(testbed.client, undefined);
  await visit({ server: "dockerd", pidAt: () => engine.pid });
  await using instance = await startDns11(engine);
  await visit({ server: "dns11", pidAt: () => instance.pid });
  await instance.stop();
}
