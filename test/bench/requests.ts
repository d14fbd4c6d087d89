// Stalls of the answering thread by what its users ask for: a dns11 as shipped beside 1,000 containers in real namespaces, of a
// scripted engine, because a real one starts six a second here. The turns are measured in its process.

import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import { dns11, startDns11 } from "../support/program/dns11.ts";
import { startSupervisor } from "../support/program/notify-socket.ts";
import { answers, getJson, postJson } from "../support/program/unix-http.ts";
import { makeFolder } from "../support/rig/folder.ts";
import { ScriptedEngine } from "../support/scripted/scripted-engine.ts";
import type { Row } from "./figures.ts";
import type { LongestTurns } from "./loop-turns.ts";
import { makeNetnses, removeNetnses } from "./namespaces.ts";
import { turnRows } from "./turn-rows.ts";

const CONTAINERS = 1_000;
const ROUNDS = 5;
// What it has not compiled before takes longer.
const REHEARSALS = 2;
const SETTLE_MS = 200;
// On the busiest machine.
const READY_MS = 400_000;
// Longer than between two messages to its supervisor, and two samples of its counters.
const IDLE_MS = 6_000;
const DOCTOR_MS = 60_000;
const MEASURES = fileURLToPath(new URL("./turns-in-process.js", import.meta.url));

const LISTS = [
  "/v1/status",
  "/v1/containers",
  "/v1/networks",
  "/v1/names",
  "/v1/names?container=c7",
  "/v1/matrix",
  "/v1/upstreams",
  "/v1/failures",
  "/v1/policies",
  "/v1/history",
];

export async function benchRequests(): Promise<Row[]> {
  const folder = makeFolder("bench-requests");
  const turns = join(folder, "turns.sock");
  const config = join(folder, "dns11.yaml");
  writeConfig(config, 0);
  const paths = makeNetnses(CONTAINERS);
  try {
    await using engine = await ScriptedEngine.start();
    await using supervisor = await startSupervisor(join(folder, "notify"));
    for (const [index, path] of paths.entries())
      engine.run({ name: `c${index}`, path, address: `10.0.${index >> 8}.${index & 255}`, aliases: [`s${index}`] });
    await using instance = await startDns11(engine, {
      args: ["--config", config],
      // The longest page: each container has its own series.
      settings: { keeper: "off", "metrics.containers": String(CONTAINERS) },
      env: {
        DNS11_ANSWERS: "process",
        NODE_OPTIONS: `--import ${MEASURES}`,
        DNS11_BENCH_TURNS: turns,
        NOTIFY_SOCKET: supervisor.name,
      },
      readyMs: READY_MS,
    });
    const { stateDir } = instance;
    const [name = ""] = readdirSync(stateDir);
    const control = join(stateDir, name, "control.sock");
    const rows: Row[] = [];
    const during = async (what: string, ask: (round: number) => Promise<unknown>): Promise<void> => {
      console.error(`bench: requests, ${what}`);
      for (let round = 0; round < REHEARSALS; round++) await ask(round + 1);
      const measured: LongestTurns[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        await getJson(turns, "/");
        await sleep(SETTLE_MS);
        await ask(round);
        await sleep(SETTLE_MS);
        measured.push((await getJson(turns, "/")) as LongestTurns);
      }
      rows.push(...turnRows(what, measured));
    };
    await during("nothing", async () => await sleep(IDLE_MS));
    for (const path of ["/metrics", "/ready"]) await during(`GET ${path}`, async () => await answers(control, path));
    for (const path of LISTS) await during(`GET ${path}`, async () => await getJson(control, path));
    const question = { container: "c7", name: "c8", type: "A" };
    await during("dns11 explain", async () => await postJson(control, "/v1/explain", question));
    const doctor = ["doctor", "c7", "-H", engine.host, "--state-dir", stateDir];
    await during("dns11 doctor of a container", async () => await dns11(doctor, { timeoutMs: DOCTOR_MS }));
    await during("a reload", async (round) => {
      writeConfig(config, round);
      await instance.reload();
    });
    return rows;
  } finally {
    removeNetnses(paths);
  }
}

// A zone comes and goes.
function writeConfig(path: string, round: number): void {
  writeFileSync(path, `version: 1\n${round % 2 === 0 ? "" : "zone: cluster.local\n"}`);
}
