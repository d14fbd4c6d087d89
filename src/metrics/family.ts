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

export function verdictFamily(values: Iterable<Sample>): Family {
  return counter(
    "dns11_verdicts_total",
    "Queries that a rule of a lease had a say in: an injected fault, an answer of the test's own, or a name that is denied; and those that a policy has refused, or would have.",
    values,
  );
}
