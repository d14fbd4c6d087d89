/** What metrics are of in a run that has served nothing. */
import { ContainerMetrics } from "../../../src/metrics/container-metrics.ts";
import type { Family } from "../../../src/metrics/exposition.ts";
import type { MetricsSource } from "../../../src/metrics/metrics.ts";
import { Meter } from "../../../src/query/record/meter.ts";

export function idleMetrics(features: readonly Family[]): MetricsSource {
  return {
    version: "",
    settings: {},
    reloads: { done: 0, failed: 0 },
    isReady: true,
    descriptorsMax: 0,
    serving: {
      meter: new Meter(),
      readings: { entries: 0, bytes: 0, bytesMax: 0, nameservers: [] },
      counts: new ContainerMetrics(0),
      containers: [],
      isConnected: undefined,
      features,
    },
  };
}
