/**
 * Exposition: the metrics in the Prometheus text format. The package is loaded at the first scrape, and only its part that
 * formats the text: the whole package takes 12 MB, this part less than 2, and without a scrape nothing.
 */
import { createRequire } from "node:module";

import type { Registry } from "prom-client";

export interface Sample {
  /** If it differs from the family's name: `_bucket`, `_sum` and `_count` of a histogram. */
  readonly metricName?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** All samples of one metric name. */
export interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly values: readonly Sample[];
}

type Registries = new () => Registry;

let registries: Registries | undefined;

export async function exposition(families: readonly Family[]): Promise<string> {
  registries ??= createRequire(import.meta.url)("prom-client/lib/registry.js") as Registries;
  const registry = new registries();
  for (const family of families) {
    if (family.values.length === 0) continue;
    // A registry collects the values of its metrics; ours are collected already.
    const metric: unknown = { ...family, get: async () => await Promise.resolve(family) };
    registry.registerMetric(metric as Parameters<Registry["registerMetric"]>[0]);
  }
  return await registry.metrics();
}
