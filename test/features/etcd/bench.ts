// Services of many machines through a real etcd: 100 simulated machines publish 10,000 containers and change 50 a second.
// The machines are one process, so its time is that of all of them; a container's start in an engine is the part `events`.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { check } from "../../support/program/command.ts";
import { Netns, inNetns } from "../../support/rig/netns.ts";
import { startEtcd } from "./etcd-server.ts";
import { cpuSeconds } from "../../bench/cpu-time.ts";
import type { FeaturePart } from "../../bench/feature-parts.ts";
import type { Row } from "../../bench/figures.ts";
import { QUICK_PACE } from "../../bench/pace.ts";
import { benchEtcdEngines } from "./bench-engines.ts";

const MAIN = fileURLToPath(new URL("bench-machines-main.js", import.meta.url));
const MACHINES = 100;
const CONTAINERS = 100;
const PER_SECOND = 50;

type Found = Readonly<Record<string, number>>;

const SECONDS = 30;
const QUICK_SECONDS = 5;

export const parts: readonly FeaturePart[] = [
  [
    "etcd",
    "Services of 100 machines through etcd",
    async (pace) => await benchEtcd(pace === QUICK_PACE ? QUICK_SECONDS : SECONDS),
  ],
  ["etcd-engines", "From a container's start on one machine to its answer on another", benchEtcdEngines],
];

async function benchEtcd(seconds: number): Promise<Row[]> {
  await using place = await Netns.create();
  await using etcd = await startEtcd(place);
  const [member] = etcd.members;
  const pid = member?.pid ?? 0;
  const before = cpuSeconds(pid);
  const startMs = performance.now();
  const words = [member?.endpoint ?? "", MACHINES, CONTAINERS, PER_SECOND, seconds].map(String);
  const [command = "", ...args] = inNetns(place.netnsPath, process.execPath, ["--expose-gc", MAIN, ...words]);
  const found = JSON.parse(await check(command, args)) as Found;
  const etcdShare = (100 * (cpuSeconds(pid) - before)) / ((performance.now() - startMs) / 1000);
  const of = (key: string, digits = 0): string => (found[key] ?? NaN).toFixed(digits);
  const share = (100 * (found["churnCpuMs"] ?? 0)) / (found["churnedMs"] ?? 1);
  return [
    {
      what: `${MACHINES} machines publish ${MACHINES * CONTAINERS} containers at once`,
      measured: `${of("filledMs")} ms, ${of("filledCpuMs")} ms of CPU for all machines`,
    },
    { what: "another machine reads them", measured: `${of("listedMs")} ms, ${of("readerMiB", 1)} MiB` },
    {
      what: `a change on one machine, known on another, ${PER_SECOND} a second`,
      measured: `p50 ${of("p50Ms", 1)} ms, p99 ${of("p99Ms", 1)} ms of ${of("changes")}, ${of("missed")} missed`,
    },
    { what: "CPU of all machines and the reader meanwhile", measured: `${share.toFixed(0)} % of a core` },
    { what: "etcd, the whole run", measured: `${etcdShare.toFixed(0)} % of a core, ${residentMiB(pid)} MiB` },
    {
      what: "one range request for each query, as CoreDNS is documented to ask etcd (a stand-in)",
      measured: `p50 ${of("askedP50Ms", 2)} ms, p99 ${of("askedP99Ms", 2)} ms before there is an answer`,
    },
  ];
}

function residentMiB(pid: number): string {
  const kib = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return (Number(kib) / 1024).toFixed(0);
}
