// Figures of a bench: medians and spreads, and the table they are printed in. Absolute times mean little on a shared
// machine; what is read is one row against another of the same run.

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

export function quantile(values: readonly number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? Number.NaN;
}

// "12.3 (11.9 to 13.0)"
export function spread(values: readonly number[], digits = 1): string {
  const [low, middle, high] = [Math.min(...values), median(values), Math.max(...values)];
  return `${middle.toFixed(digits)} (${low.toFixed(digits)} to ${high.toFixed(digits)})`;
}

export type Row = {
  readonly what: string;
  readonly measured: string;
  // What the design asks for, and whether the figure reaches it; rows without a target have neither.
  readonly target?: string;
  readonly isReached?: boolean;
};

export function printRows(title: string, rows: readonly Row[]): void {
  const verdict = (row: Row): string => (row.isReached === undefined ? "" : row.isReached ? "reached" : "MISSED");
  const cells = rows.map((row) => [row.what, row.measured, row.target ?? "", verdict(row)]);
  const widths = [0, 1, 2, 3].map((column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  console.log(`\n${title}`);
  for (const row of cells)
    console.log(`  ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ")}`.trimEnd());
}
