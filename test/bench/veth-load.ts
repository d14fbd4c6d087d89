// What packets through a veth cost, by veth-load.c, as things are and in other states, in turn: the time that 64 KiB take between two
// programs, and the processor time of the kernel alone, with both ends in one program on one processor.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { stdoutOf } from "../support/program/command.ts";
import { run } from "../support/program/command.ts";
import { type Row, median, readable, spreadOf } from "./figures.ts";
import { compile } from "./native.ts";
import type { Pace } from "./pace.ts";

type NamespaceOwner = { readonly netnsPath: string };

export interface VethParts {
  readonly server: NamespaceOwner;
  readonly address: string;
  readonly client: NamespaceOwner;
  // Whether throughput has a target.
  readonly isBar: boolean;
  // By name: brings a state about, and ends it.
  readonly states: Readonly<Record<string, () => Promise<() => Promise<void>>>>;
}

// At most so much of the throughput.
const COST_MAX = 0.03;
// More rounds than others: what is measured here is small.
const ROUNDS_EACH = 4;
const LOADS = [
  { kind: "programs", what: "TCP through a veth between two programs, 64 KiB", units: 65_536, target: COST_MAX },
  { kind: "stream", what: "TCP through a veth, 64 KiB, the kernel alone", units: 65_536 },
  { kind: "connect", what: "a TCP connection, opened and reset", units: 1 },
  { kind: "datagrams", what: "a datagram of 512 bytes", units: 1 },
] as const;

export async function vethRows(parts: VethParts, pace: Pace): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), "d11-veth-"));
  try {
    const program = await compile("veth-load", folder);
    if (program === undefined) return [];
    const rows: Row[] = [];
    for (const load of LOADS) rows.push(...(await rowsOf(program, load, parts, pace)));
    return rows;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function rowsOf(
  program: string,
  { kind, what, units, ...bar }: (typeof LOADS)[number],
  { server, address, client, states, isBar }: VethParts,
  pace: Pace,
): Promise<Row[]> {
  // Microseconds for so many units.
  const measure = async (seconds: number): Promise<number> => {
    const args = [kind, String(seconds * 1_000), address, server.netnsPath, client.netnsPath];
    const result = JSON.parse(stdoutOf(await run(program, args), "veth-load")) as { count: number; nanos: number };
    return (result.nanos / 1_000 / result.count) * units;
  };
  await measure(pace.warmSeconds);
  const seconds = pace.seconds / 4;
  const without: number[] = [];
  const found = Object.keys(states).map((name) => ({ name, times: [] as number[], ratios: [] as number[] }));
  for (let round = 0; round < (pace.rounds * ROUNDS_EACH) / found.length; round++) {
    for (const { name, times, ratios } of found) {
      const first = await measure(seconds);
      const end = await states[name]?.();
      const inState = ((await measure(seconds)) + (await measure(seconds))) / 2;
      await end?.();
      const plain = (first + (await measure(seconds))) / 2;
      without.push(plain);
      times.push(inState);
      ratios.push(inState / plain);
    }
  }
  return found.map(({ name, times, ratios }) => ({
    what: `${what}${found.length > 1 ? `, ${name}` : ""}`,
    measured: `${readable(spreadOf(ratios), 3)} x: ${median(times).toFixed(2)} us, ${median(without).toFixed(2)} us without`,
    ...(isBar && "target" in bar && { target: `<= ${1 + bar.target} x`, isReached: median(ratios) <= 1 + bar.target }),
  }));
}
