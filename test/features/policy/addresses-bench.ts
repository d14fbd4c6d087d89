// What it costs to hold connections to policies: the time from an answer's addresses to the kernel's acknowledgement, alone and beside
// 1,000 policed containers; what each of those takes of memory, in the process and in the kernel; and what the rules cost that judge
// packets, in processor time, where a policy only records, where it is enforced, and for a container beside one that has a policy.

import { closeSync, openSync, readFileSync } from "node:fs";
import { performance } from "node:perf_hooks";

import { NamespaceRunner } from "../../../src/container/namespace/namespace-runner.ts";
import { NetlinkMemory } from "../../../src/kernel/netlink-socket.ts";
import type { PolicedContainer } from "../../../src/features/policy/table/container-rules.ts";
import { PolicyTable } from "../../../src/features/policy/table/policy-table.ts";
import { Netns } from "../../support/rig/netns.ts";
import { GATEWAY, OUTSIDE, PolicedNetwork, bytes } from "./policed-network.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { type Row, quantile } from "../../bench/figures.ts";
import type { Pace } from "../../bench/pace.ts";
import { vethRows } from "../../bench/veth-load.ts";

const CONTAINERS = 1_000;
const SAMPLES = 2_000;
const KEPT_SAMPLES = 1_000_000;
const AT_ONCE = 50;
const LIFE_MS = 3_600_000;

// A machine with containers tracks connections anyway.
const AS_DOCKER = `table ip docker {
  chain forward { type filter hook forward priority 0; ct state established,related accept; };
  chain leave { type nat hook postrouting priority 100; ip saddr 10.77.0.0/24 oifname "out0" masquerade; };
}`;

export async function benchAddresses(pace: Pace): Promise<Row[]> {
  return [...(await openingRows()), ...(await packetRows(pace))];
}

// Through a veth, a bridge and a route, as containers reach an internet.
async function packetRows(pace: Pace): Promise<Row[]> {
  await using network = await PolicedNetwork.create(2);
  const [first, second] = network.members;
  if (first === undefined || second === undefined) throw new Error(`nobody is behind ${GATEWAY[4]}`);
  if ((await network.connect(first, OUTSIDE.allowed, 443)) !== "open") throw new Error("the internet is not reached");
  const { stderr } = await network.machine.enter("nft", ["-f", "-"], { input: AS_DOCKER });
  if (stderr !== "") throw new Error(stderr);
  const held = (member: typeof first, isEnforced: boolean) => async (): Promise<() => Promise<void>> => {
    const table = await waitFor("the table", async () => await network.table().catch(() => undefined));
    await table.apply(network.policed(member, { isEnforced }), [network.linkOf(member)]);
    if (isEnforced) await table.open(member.id, [{ address: bytes(OUTSIDE.allowed) }], LIFE_MS);
    return async () => {
      const found = table.refused(member.id).length;
      await table.delete();
      table[Symbol.dispose]();
      if (member === first && found > 0 === isEnforced) throw new Error("the rules did not judge what was sent");
    };
  };
  const states = {
    audited: held(first, false),
    enforced: held(first, true),
    "beside a container with a policy": held(second, true),
  };
  return await vethRows(
    { server: network.outside, address: OUTSIDE.allowed, client: first.netns, states, isBar: false },
    pace,
  );
}

async function openingRows(): Promise<Row[]> {
  await using netns = await Netns.create();
  const runner = new NamespaceRunner();
  const fd = openSync(netns.netnsPath, "r");
  try {
    const within = <T>(work: () => T): T => runner.within(fd, work);
    using table = await PolicyTable.open({ memory: new NetlinkMemory(), within, resolvers: [] });
    const first = container(0);
    await table.apply(first, []);
    const rows = [
      await openRow(table, first.id, "alone"),
      await roundRow(table, first.id),
      await keptRow(table, first.id),
    ];
    return [...rows, ...(await manyRows(table))];
  } finally {
    closeSync(fd);
    runner.close();
  }
}

function container(number: number): PolicedContainer {
  return {
    startedAt: "now",
    id: number.toString(16).padStart(64, "0").split("").toReversed().join(""),
    addresses: [Uint8Array.of(10, 1, number >> 8, number & 0xff)],
    rules: [],
    subnets: [],
    isComplete: true,
    reachesPeers: true,
    reachesHost: false,
    isEnforced: true,
  };
}

let made = 0;

function newAddress(): Uint8Array {
  made++;
  return Uint8Array.of(20, (made >> 16) & 0xff, (made >> 8) & 0xff, made & 0xff);
}

async function openRow(table: PolicyTable, id: string, where: string): Promise<Row> {
  const took: number[] = [];
  for (let each = 0; each < SAMPLES; each++) {
    const start = performance.now();
    await table.open(id, [{ address: newAddress(), port: 443 }], LIFE_MS);
    took.push((performance.now() - start) * 1_000);
  }
  return { what: `an answer opens one address, ${where}, p50 and p99`, measured: microsText(took) };
}

async function roundRow(table: PolicyTable, id: string): Promise<Row> {
  const took: number[] = [];
  for (let each = 0; each < SAMPLES / 10; each++) {
    const start = performance.now();
    const answers = Array.from({ length: AT_ONCE }, () =>
      table.open(id, [{ address: newAddress(), port: 443 }], LIFE_MS),
    );
    await Promise.all(answers.filter((answer) => answer !== undefined));
    took.push((performance.now() - start) * 1_000);
  }
  return { what: `${AT_ONCE} answers of one round open one each, p50 and p99 of all`, measured: microsText(took) };
}

async function keptRow(table: PolicyTable, id: string): Promise<Row> {
  const openings = [{ address: newAddress(), port: 443 }];
  await table.open(id, openings, LIFE_MS);
  const start = performance.now();
  for (let each = 0; each < KEPT_SAMPLES; each++) void table.open(id, openings, LIFE_MS);
  const nanos = ((performance.now() - start) * 1e6) / KEPT_SAMPLES;
  return { what: "an answer whose address is open already", measured: `${nanos.toFixed(0)} ns` };
}

async function manyRows(table: PolicyTable): Promise<Row[]> {
  await collected();
  const [heap, kernel] = [process.memoryUsage().heapUsed, kernelBytes()];
  const start = performance.now();
  for (let number = 1; number <= CONTAINERS; number++) await table.apply(container(number), []);
  const each = (performance.now() - start) / CONTAINERS;
  await collected();
  const heapEach = (process.memoryUsage().heapUsed - heap) / CONTAINERS;
  const kernelEach = (kernelBytes() - kernel) / CONTAINERS;
  return [
    { what: `${CONTAINERS} containers: to police one`, measured: `${each.toFixed(2)} ms` },
    { what: "memory of each, in the process", measured: `${(heapEach / 1024).toFixed(1)} KB` },
    {
      what: "memory of each, in the kernel, with what else the machine did",
      measured: `${(kernelEach / 1024).toFixed(1)} KB`,
    },
    await openRow(table, container(CONTAINERS / 2).id, `beside ${CONTAINERS} containers`),
  ];
}

async function collected(): Promise<void> {
  for (let times = 0; times < 3; times++) {
    await new Promise((resolve) => setImmediate(resolve));
    globalThis.gc?.();
  }
}

// What the kernel has allocated for itself, on the whole machine.
function kernelBytes(): number {
  const text = readFileSync("/proc/meminfo", "utf8");
  return Number(/^SUnreclaim: +(\d+) kB$/m.exec(text)?.[1]) * 1024;
}

function microsText(took: readonly number[]): string {
  return `${quantile(took, 0.5).toFixed(0)} and ${quantile(took, 0.99).toFixed(0)} us`;
}
