/**
 * Exposition: the metrics in the Prometheus text format. The package is loaded at the first scrape, and only its part that
 * formats the text: the whole package takes 12 MB, this part less than 2, and without a scrape nothing.
 *
 * With series of a thousand containers the text takes 30 ms, so queries are answered in between.
 */
import { createRequire } from "node:module";
import type { Registry } from "prom-client";
import { ownSlice } from "../base/lib/slices.ts";

export interface Sample {
  /** If it differs from the family's name: `_bucket`, `_sum` and `_count` of a histogram. */
  readonly metricName?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** All samples of one metric name; they may be made as they are read. */
export interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly values: Iterable<Sample>;
}

type Registries = new () => Registry;

/** One costs some 3 us. */
const SAMPLES_AT_ONCE = 256;

let registries: Registries | undefined;

export async function exposition(families: readonly Family[]): Promise<string> {
  const texts: string[] = [];
  let count = 0;
  for (const family of families) {
    const parts: string[] = [];
    for (const values of partsOf(family.values)) {
      const text = await textOf({ ...family, values });
      parts.push(parts.length === 0 ? text : withoutHead(text));
      count += values.length;
      if (count < SAMPLES_AT_ONCE) continue;
      await ownSlice();
      count = 0;
    }
    if (parts.length > 0) texts.push(parts.join(""));
  }
  return texts.join("\n");
}

/** With a newline at its end. */
async function textOf(family: Family): Promise<string> {
  registries ??= createRequire(import.meta.url)("prom-client/lib/registry.js") as Registries;
  const registry = new registries();
  // A registry collects the values of its metrics; ours are collected already.
  const metric: unknown = { ...family, get: async () => await Promise.resolve(family) };
  registry.registerMetric(metric as Parameters<Registry["registerMetric"]>[0]);
  return await registry.metrics();
}

function* partsOf(values: Iterable<Sample>): Generator<Sample[]> {
  let part: Sample[] = [];
  for (const value of values) {
    if (part.push(value) < SAMPLES_AT_ONCE) continue;
    yield part;
    part = [];
  }
  if (part.length > 0) yield part;
}

/** Without its lines of help and type. */
function withoutHead(text: string): string {
  return text.slice(text.indexOf("\n", text.indexOf("\n") + 1) + 1);
}

export type Labels = Readonly<Record<string, string>>;

export function sample(value: number, labels: Labels = {}): Sample {
  return { labels, value };
}

export function counter(name: string, help: string, values: Iterable<Sample>): Family {
  return { name, help, type: "counter", values };
}

export function gauge(name: string, help: string, values: Iterable<Sample>): Family {
  return { name, help, type: "gauge", values };
}

export function verdictFamily(values: Iterable<Sample>): Family {
  return counter(
    "dns11_verdicts_total",
    "Queries that a rule of a lease had a say in: an injected fault, an answer of the test's own, or a name that is denied; and those that a policy has refused, or would have.",
    values,
  );
}
