// make soak: hours in minutes. It queries container names, cached names and cache misses while containers come and go,
// and reports at the end, as text and as one line of JSON, whether queries were lost and whether memory or descriptors
// grew. SECONDS=N changes the duration of ten minutes.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { SYSTEM_PATH } from "../support/program/command.ts";
import { startDns11 } from "../support/program/dns11.ts";
import { startEngine } from "../support/engine/engine.ts";
import { inNetns } from "../support/rig/netns.ts";
import { startUnbound } from "../support/servers/real-server.ts";
import { median } from "./figures.ts";

const SECONDS = Number(process.env["SECONDS"] ?? 600);
const SECONDS_MIN = 30;
const PER_SECOND = 4_000;
const UPSTREAM = "10.53.0.1";
const NAMES = 1_000;
const CHURN_EVERY_MS = 500;
const MEASURE_EVERY_MS = 2_000;
// Compilation and filling caches; growth after this share of the time counts.
const WARM_SHARE = 0.3;
const GROWTH_MAX = 1.1;
const DESCRIPTORS_MAX = 40;
// One of ten queries is a cache miss; a few of those are coalesced.
const MISSED_SHARE_MIN = 0.08;

type Measurement = { readonly memoryBytes: number; readonly descriptors: number };

type Summary = {
  readonly seconds: number;
  readonly sent: number;
  readonly lost: number;
  readonly wrong: number;
  // Results of the queries.
  readonly local: number;
  readonly cached: number;
  readonly forwarded: number;
  readonly churned: number;
  // Medians of the first and of the second half after the warm-up.
  readonly memoryBytes: readonly [number, number];
  readonly descriptors: readonly [number, number];
  readonly isOk: boolean;
};

if (!Number.isInteger(SECONDS) || SECONDS < SECONDS_MIN) {
  console.error(
    `SECONDS=${process.env["SECONDS"] ?? ""} is invalid: use a whole number of seconds, at least ${SECONDS_MIN}`,
  );
  process.exit(2);
}
const summary = await soak();
const [early, late] = summary.memoryBytes.map((bytes) => (bytes / 1e6).toFixed(0));
console.log(`${summary.sent} queries in ${summary.seconds} s while ${summary.churned} containers came and went`);
console.log(`${summary.local} container names, ${summary.cached} cache hits, ${summary.forwarded} forwarded`);
console.log(`lost ${summary.lost}, wrong ${summary.wrong}; memory ${early} MB early, ${late} MB late`);
console.log(`descriptors ${summary.descriptors.join(" early, ")} late; ${summary.isOk ? "passed" : "FAILED"}`);
console.log(JSON.stringify(summary));
process.exit(summary.isOk ? 0 : 1);

async function soak(): Promise<Summary> {
  await using engine = await startEngine({ resolvConf: `nameserver ${UPSTREAM}\n` });
  const zones = ['local-zone: "cached.test." redirect', 'local-data: "cached.test. 3600 A 192.0.2.1"'];
  // A TTL of 0 makes every query a cache miss.
  const missed = ['local-zone: "missed.test." redirect', 'local-data: "missed.test. 0 A 192.0.2.2"'];
  await using _upstream = await startUnbound(engine, { address: UPSTREAM, lines: [...zones, ...missed] });
  await createNetwork(engine, "n1");
  await runContainer(engine, { name: "web", networks: ["n1"] });
  const client = await runContainer(engine, { name: "client", networks: ["n1"] });
  const questions = join(engine.folder, "questions");
  writeFileSync(questions, questionLines().join(""));
  await using instance = await startDns11(engine);
  const load = runLoad(client, questions);
  const measurements: Measurement[] = [];
  const ending = Date.now() + SECONDS * 1_000;
  let churned = 0;
  const churn = (async () => {
    for (; Date.now() < ending; churned++) {
      await using _ = await runContainer(engine, { name: `short-${churned}`, networks: ["n1"] });
      await sleep(CHURN_EVERY_MS);
    }
  })();
  for (; Date.now() < ending; await sleep(MEASURE_EVERY_MS)) measurements.push(measure(instance.pid));
  await churn;
  const { sent, lost, wrong } = await load;
  const { local = 0, cached = 0, forwarded = 0 } = (await instance.container("client"))?.counters ?? {};
  await instance.stop();
  const after = measurements.slice(Math.floor(measurements.length * WARM_SHARE));
  const half = Math.floor(after.length / 2);
  const halves = (figure: keyof Measurement): [number, number] => [
    median(after.slice(0, half).map((one) => one[figure])),
    median(after.slice(half).map((one) => one[figure])),
  ];
  const [memoryBytes, descriptors] = [halves("memoryBytes"), halves("descriptors")];
  const isFlat = memoryBytes[1] <= memoryBytes[0] * GROWTH_MAX && descriptors[1] - descriptors[0] <= DESCRIPTORS_MAX;
  const isMixed = churned > 0 && local > cached && cached > forwarded && forwarded > sent * MISSED_SHARE_MIN;
  const isOk = isFlat && isMixed && lost === 0 && wrong === 0;
  return { seconds: SECONDS, sent, lost, wrong, local, cached, forwarded, churned, memoryBytes, descriptors, isOk };
}

// Of ten queries seven are for a container, two are cached and one is a cache miss.
function questionLines(): string[] {
  return Array.from({ length: NAMES }, (_, index) => {
    if (index % 10 < 7) return "web A\n";
    return index % 10 < 9 ? `n${index}.cached.test A\n` : `n${index}.missed.test A\n`;
  });
}

async function runLoad(client: Container, questions: string): Promise<Pick<Summary, "sent" | "lost" | "wrong">> {
  const args = ["-s", "127.0.0.11", "-d", questions, "-l", String(SECONDS), "-Q", String(PER_SECOND), "-c", "8"];
  const [command = "", ...rest] = inNetns(client.netnsPath, "dnsperf", args);
  const child = spawn(command, rest, {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, PATH: SYSTEM_PATH },
  });
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => (text += chunk.toString()));
  await once(child, "close");
  const figure = (pattern: RegExp): number => Number(pattern.exec(text)?.[1] ?? 0);
  const completed = figure(/Queries completed:\s+(\d+)/);
  const right = figure(/Response codes:\s+NOERROR (\d+)/);
  return { sent: figure(/Queries sent:\s+(\d+)/), lost: figure(/Queries lost:\s+(\d+)/), wrong: completed - right };
}

function measure(pid: number): Measurement {
  const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return { memoryBytes: Number(kilobytes) * 1024, descriptors: readdirSync(`/proc/${pid}/fd`).length };
}
