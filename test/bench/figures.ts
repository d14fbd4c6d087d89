// Figures of a bench: medians and spreads, and the table they are printed in. Absolute times mean little on a shared
// machine; what is read is one row against another of the same run.

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

// The nearest rank: of a hundred values the 99th is p99, and not the one that is worst.
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
  // What the design asks for, and whether the figure reaches it; rows without a target have neither.
  readonly target?: string;
  readonly isReached?: boolean;
};

export function verdict(isReached: boolean | undefined): string {
  return isReached === undefined ? "" : isReached ? "reached" : "MISSED";
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
