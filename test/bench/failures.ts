// From a query that fails to its cause: when `GET /v1/failures` lists it, and how long the commands take that a user types.
// Nothing of this is on the way of an answer; the rows of local names show whether recording is.

import { performance } from "node:perf_hooks";

import { createNetwork, runContainer } from "../support/engine/container.ts";
import { startEngine } from "../support/engine/engine.ts";
import { dig } from "../support/client/dig.ts";
import { stdoutOf } from "../support/program/command.ts";
import { dns11, startDns11 } from "../support/program/dns11.ts";
import { waitFor } from "../support/rig/wait.ts";
import { startUpstream } from "../support/servers/upstream.ts";
import { type Row, median, quantile } from "./figures.ts";

const FAILURES = 100;
const COMMANDS = 10;
const LISTED_MAX_MS = 1_000;

export async function benchFailures(): Promise<Row[]> {
  await using engine = await startEngine({ resolvConf: "nameserver 127.0.0.1\n" });
  await using _upstream = await startUpstream(engine);
  for (const name of ["front", "back"]) await createNetwork(engine, name);
  const api = await runContainer(engine, { name: "api", networks: ["front"] });
  await runContainer(engine, { name: "db", networks: ["back"] });
  await using instance = await startDns11(engine);
  const client = instance.client;
  const listed: number[] = [];
  for (let index = 0; index < FAILURES; index++) {
    const name = `missing${index}`;
    await dig(api, name);
    // The reply is here, so dig's own start and end do not count.
    const startMs = performance.now();
    await waitFor(
      `${name} to be listed`,
      async () => {
        const { failures } = await client.failures({ container: "api" });
        return failures.some((each) => each.name === name && each.cause !== null) ? true : undefined;
      },
      { everyMs: 1 },
    );
    listed.push(performance.now() - startMs);
  }
  await dig(api, "db");
  const p99 = quantile(listed, 0.99);
  return [
    { what: "a query fails until its cause is listed, p50", measured: milliseconds(median(listed)) },
    {
      what: "a query fails until its cause is listed, p99",
      measured: milliseconds(p99),
      target: `<= ${LISTED_MAX_MS} ms`,
      isReached: p99 <= LISTED_MAX_MS,
    },
    ...(await commandRows(["failures"], ["explain", "db", "api"], ["doctor", "api"])),
  ];

  async function commandRows(...commands: readonly string[][]): Promise<Row[]> {
    const rows: Row[] = [];
    for (const words of commands) {
      const took: number[] = [];
      for (let times = 0; times < COMMANDS; times++) {
        const startMs = performance.now();
        const result = await dns11([...words, "-H", engine.host, "--state-dir", instance.stateDir]);
        took.push(performance.now() - startMs);
        // The doctor exits with 1, because it finds the problem.
        if (result.code > 1) stdoutOf(result, words.join(" "));
      }
      rows.push({ what: `dns11 ${words.join(" ")}, whole command`, measured: milliseconds(median(took)) });
    }
    return rows;
  }
}

function milliseconds(ms: number): string {
  return `${ms.toFixed(1)} ms`;
}
