// The benches of features: each is in the folder of the feature's tests.

import { existsSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

import type { Row } from "./figures.ts";
import type { Pace } from "./pace.ts";

export type FeaturePart = readonly [word: string, title: string, bench: (pace: Pace) => Promise<Row[]>];

export async function featureParts(): Promise<readonly FeaturePart[]> {
  const folder = new URL("../features/", import.meta.url);
  const files = readdirSync(folder).map((name) => new URL(`${name}/bench.js`, folder));
  const loaded = await Promise.all(
    files
      .filter((file) => existsSync(fileURLToPath(file)))
      .map(async ({ href }) => (await import(href)) as { readonly parts: readonly FeaturePart[] }),
  );
  return loaded.flatMap(({ parts }) => parts);
}
