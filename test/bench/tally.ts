// Samples of the data plane, one per round for each row and server, and the figures and ratios computed from them.

import { SERVERS, type Server } from "./server.ts";
import { type Spread, spreadOf } from "./figures.ts";

export type Sample = {
  readonly perSecond?: number;
  readonly cpuMicros?: number;
  readonly p50Ms?: number;
  readonly p99Ms?: number;
  readonly lost: number;
};

export type Column = Exclude<keyof Sample, "lost">;

const COLUMNS: readonly Column[] = ["perSecond", "cpuMicros", "p50Ms", "p99Ms"];

// Line of a row for one server: median, minimum and maximum of the rounds; the sum of lost queries.
export type Line = {
  readonly row: string;
  readonly server: Server;
  readonly columns: Readonly<Partial<Record<Column, Spread>>>;
  readonly lost: number;
};

export type Cell = { readonly row: string; readonly server: Server };

export class Tally {
  // Docker's version.
  engine = "";
  readonly #samples = new Map<string, Map<Server, Sample[]>>();

  add({ row, server }: Cell, sample: Sample): void {
    const ofRow = this.#samples.get(row) ?? new Map<Server, Sample[]>();
    this.#samples.set(row, ofRow);
    ofRow.set(server, [...(ofRow.get(server) ?? []), sample]);
  }

  // Rows in the order in which they were measured.
  lines(): Line[] {
    return [...this.#samples].flatMap(([row, ofRow]) =>
      SERVERS.flatMap((server) => {
        const samples = ofRow.get(server);
        return samples === undefined ? [] : [lineOf({ row, server }, samples)];
      }),
    );
  }

  // Ratios per round, because a disturbance affects both servers of a round; empty if one of them was not measured, and
  // without rounds in which there was nothing to compare with: the kernel's answers take the process no time.
  ratios(ours: Cell, theirs: Cell, column: Column): number[] {
    const [of, to] = [this.values(ours, column), this.values(theirs, column)];
    return of.flatMap((value, round) => (to[round] === undefined || to[round] === 0 ? [] : [value / to[round]]));
  }

  // One per round.
  values({ row, server }: Cell, column: Column): number[] {
    const samples = this.#samples.get(row)?.get(server) ?? [];
    return samples.flatMap((sample) => sample[column] ?? []);
  }
}

function lineOf(cell: Cell, samples: readonly Sample[]): Line {
  const columns = COLUMNS.flatMap((column) => {
    const values = samples.flatMap((sample) => sample[column] ?? []);
    return values.length === 0 ? [] : [[column, spreadOf(values)] as const];
  });
  return {
    ...cell,
    columns: Object.fromEntries(columns),
    lost: samples.reduce((sum, { lost }) => sum + lost, 0),
  };
}
