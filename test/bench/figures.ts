// Figures of the bench: medians and spreads, and how they are printed. Absolute times mean little on a shared machine;
// compare rows of the same run.

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

// Nearest rank: of a hundred values p99 is the 99th, not the maximum.
export function quantile(values: readonly number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(q * sorted.length) - 1)] ?? Number.NaN;
}

export type Spread = { readonly median: number; readonly low: number; readonly high: number };

export function spreadOf(values: readonly number[]): Spread {
  return { median: median(values), low: Math.min(...values), high: Math.max(...values) };
}

// "12.3 (11.9 to 13.0)"
export function readable({ median: middle, low, high }: Spread, digits: number): string {
  return `${middle.toFixed(digits)} (${low.toFixed(digits)} to ${high.toFixed(digits)})`;
}

export type Row = {
  readonly what: string;
  readonly measured: string;
  // Design target, and whether it is met; both are missing in rows without a target.
  readonly target?: string;
  readonly isReached?: boolean;
};

export function verdict(isReached: boolean | undefined): string {
  return isReached === undefined ? "" : isReached ? "met" : "MISSED";
}

export function printRows(title: string, rows: readonly Row[]): void {
  printCells(
    title,
    rows.map((row) => [row.what, row.measured, row.target ?? "", verdict(row.isReached)]),
  );
}

export function printCells(title: string, rows: readonly (readonly string[])[]): void {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  console.log(`\n${title}`);
  for (const row of rows)
    console.log(`  ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ")}`.trimEnd());
}
