// TCP load: sixteen concurrent connections with ten queries each, sent in one write; then each is closed and replaced.
// It uses the bench's own C program: dnsperf 2.10 reopens connections only every tenth of a second and would measure
// that.

import { stdoutOf } from "../support/program/command.ts";
import type { Bench } from "./bench.ts";
import { type RunLoad, sampleOf } from "./load-program.ts";
import { STEADILY_PER_SECOND } from "./dnsperf.ts";
import { compile } from "./native.ts";
import type { Testbed } from "./testbed.ts";
import { takeRounds } from "./turns.ts";

const ROW = "container name, A, by TCP";
const CONNECTIONS = 16;
const QUESTIONS = 10;

export async function benchTcp(bench: Bench, testbed: Testbed): Promise<void> {
  const { engine, tally, pace } = bench;
  const program = await compile("tcp-clients", engine.folder);
  if (program === undefined) return;
  const { client, hosts } = testbed;
  const name = hosts[0]?.name ?? "";
  await takeRounds(bench, { what: ROW, testbeds: [testbed] }, async (turn) => {
    const { server, pidAt } = turn;
    // Neither the floor nor aardvark-dns 1.4 listens on TCP.
    if (server === "floor" || server === "aardvark-dns") return;
    const runLoad: RunLoad = async (how, seconds) => {
      const perSecond = how === "steadily" ? STEADILY_PER_SECOND / QUESTIONS : 0;
      const args = [perSecond, seconds * 1_000, CONNECTIONS, QUESTIONS].map(String);
      return stdoutOf(await client.enter(program, [...args, name]), "tcp-clients");
    };
    tally.add({ row: ROW, server }, await sampleOf(runLoad, turn, pidAt(testbed) ?? 0, pace));
  });
}
