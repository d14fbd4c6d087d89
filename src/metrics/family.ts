/**
 * Family: counters and gauges, made from their samples.
 */
import type { Family, Sample } from "./exposition.ts";

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
