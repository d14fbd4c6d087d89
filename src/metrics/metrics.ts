/**
 * Metrics: every family that is told, with its help text, read out of what is counted anyway. Names and labels are CoreDNS's
 * behind `dns11_` where they mean the same; the two that moby has proposed for its own resolver are told under moby's
 * names as well.
 */
import { createHash } from "node:crypto";

import { type Histogram, type Distribution } from "../base/lib/histogram.ts";
import type { Family, Sample } from "./exposition.ts";
import {
  FAMILIES,
  type Meter,
  OUTCOMES,
  PROTOCOLS,
  RCODE_NAMES,
  RESULTS,
  TYPE_NAMES,
  durationSeries,
  upstreamSeries,
} from "../query/record/meter.ts";
import { processFamilies } from "./process-metrics.ts";
import type { SettingOrigins } from "../base/model/setting-origins.ts";
import type { ContainerStatus } from "../api/status.ts";
import type { ContainerMetrics } from "./container-metrics.ts";

/** What can be read of a query's way at any time. */
export interface QueryReadings {
  readonly entries: number;
  readonly bytes: number;
  readonly bytesMax: number;
  /** The host's nameservers that were asked. */
  readonly nameservers: readonly { readonly server: string; readonly isUp: boolean }[];
}

/** What is read out; what is undefined does not exist yet. */
export interface MetricsSource {
  readonly version: string;
  readonly settings: SettingOrigins;
  readonly reloads: { readonly done: number; readonly failed: number };
  readonly isReady: boolean;
  /** How many files and sockets the process may have. */
  readonly descriptorsMax: number;
  readonly serving?: {
    readonly meter: Meter;
    readonly readings: QueryReadings;
    readonly counts: ContainerMetrics;
    readonly containers: readonly ContainerStatus[];
    /** undefined where there is no engine. */
    readonly isConnected: boolean | undefined;
  };
}

export function familiesOf(source: MetricsSource): Family[] {
  const { serving } = source;
  return [
    ...processInfoFamilies(source),
    ...(serving === undefined
      ? []
      : [
          ...queryFamilies(serving.meter),
          ...upstreamFamilies(serving.meter, serving.readings),
          ...cacheFamilies(serving.meter, serving.readings),
          ...containerFamilies(serving.containers, serving.counts, serving.isConnected),
        ]),
    ...processFamilies(source.descriptorsMax),
  ];
}

function processInfoFamilies({ version, settings, reloads, isReady }: MetricsSource): Family[] {
  const hash = createHash("sha512").update(JSON.stringify(settings)).digest("hex");
  return [
    gauge("dns11_build_info", "Always 1; which dns11 this is, on which Node.", [
      sample(1, { version, node: process.versions.node }),
    ]),
    gauge("dns11_ready", "1 from when every container was attached or refused once until the end begins.", [
      sample(Number(isReady)),
    ]),
    counter("dns11_reloads_total", "Times that the settings were read again.", [sample(reloads.done)]),
    counter("dns11_reload_failed_total", "Times that the settings could not be read again; the old ones stay.", [
      sample(reloads.failed),
    ]),
    gauge("dns11_reload_version_info", "Always 1; the hash of the settings that count.", [
      sample(1, { hash: "sha512", value: hash }),
    ]),
  ];
}

function queryFamilies(meter: Meter): Family[] {
  const requests = PROTOCOLS.flatMap((proto, protocol) =>
    FAMILIES.flatMap((family, at) =>
      TYPE_NAMES.map((type, index) => sample(meter.requests(protocol, at, index), { proto, family, type })),
    ),
  );
  const all = Array.from({ length: meter.durations.series }, (_, series) => series);
  return [
    counter(
      "dns11_dns_requests_total",
      "Queries of containers, by protocol, address family and type.",
      nonZero(requests),
    ),
    counter(
      "dns11_dns_responses_total",
      "Answers to containers, by rcode.",
      nonZero(RCODE_NAMES.map((rcode, index) => sample(meter.responses(index), { rcode }))),
    ),
    histogram("dns11_dns_request_duration_seconds", "From a query's arrival to its answer.", [
      [{}, meter.durations, all],
    ]),
    histogram(
      "libnetwork_resolver_query_duration_seconds",
      "The same by type, protocol and outcome, under the name that moby has proposed.",
      TYPE_NAMES.flatMap((qtype, type) =>
        PROTOCOLS.flatMap((proto, protocol) =>
          OUTCOMES.map((outcome, at): Row => {
            return [{ qtype, proto, outcome }, meter.durations, [durationSeries(type, protocol, at)]];
          }),
        ),
      ),
    ),
    counter("dns11_dns_dropped_total", "What came and was no query that could be answered.", [
      sample(meter.counts.dropped),
    ]),
    counter("dns11_forward_max_concurrent_rejects_total", "Queries refused because too many were in flight.", [
      sample(meter.counts.refused),
    ]),
    counter("dns11_panics_total", "Queries that laid bare a defect of dns11.", [sample(meter.counts.defects)]),
  ];
}

function upstreamFamilies(meter: Meter, { nameservers }: QueryReadings): Family[] {
  const servers = meter.servers();
  const protocols = PROTOCOLS.map((_, protocol) => protocol);
  const failures = RESULTS.slice(RCODE_NAMES.length);
  const seriesOf = (at: number, result: number): number[] =>
    protocols.map((protocol) => upstreamSeries(at, protocol, result));
  return [
    histogram(
      "dns11_proxy_request_duration_seconds",
      "From a query to a nameserver to its answer, by nameserver and rcode.",
      servers.flatMap(([to, at]) =>
        RCODE_NAMES.map((rcode, result): Row => [{ to, rcode }, meter.upstream, seriesOf(at, result)]),
      ),
    ),
    counter(
      "dns11_proxy_failures_total",
      "Queries to a nameserver that brought no answer, by nameserver and reason.",
      nonZero(
        servers.flatMap(([to, at]) =>
          failures.map((reason, index) => {
            const { atMost } = meter.upstream.read(seriesOf(at, RCODE_NAMES.length + index));
            return sample(atMost.at(-1) ?? 0, { to, reason });
          }),
        ),
      ),
    ),
    histogram(
      "libnetwork_resolver_upstream_request_duration_seconds",
      "Queries to nameservers by protocol and result, under the name that moby has proposed.",
      PROTOCOLS.flatMap((proto, protocol) =>
        RESULTS.map((result, index): Row => {
          return [{ proto, result }, meter.upstream, servers.map(([, at]) => upstreamSeries(at, protocol, index))];
        }),
      ),
    ),
    gauge(
      "dns11_upstream_up",
      "1 for a nameserver of the host's that answers, 0 for one that is down and asked last.",
      nameservers.map(({ server, isUp }) => sample(Number(isUp), { to: server })),
    ),
  ];
}

function cacheFamilies({ cache }: Meter, { entries, bytes, bytesMax }: QueryReadings): Family[] {
  return [
    counter("dns11_cache_hits_total", "Queries answered from kept replies: successes and denials.", [
      sample(cache.hits, { type: "success" }),
      sample(cache.denials, { type: "denial" }),
    ]),
    counter("dns11_cache_misses_total", "Queries for which no kept reply would do.", [sample(cache.misses)]),
    counter("dns11_cache_served_stale_total", "Answers that were over and stood in for nameservers that failed.", [
      sample(cache.stale),
    ]),
    counter("dns11_cache_prefetch_total", "Kept replies that were asked for anew before anybody waited.", [
      sample(cache.prefetches),
    ]),
    counter("dns11_cache_evictions_total", "Kept replies that had to make room.", [sample(cache.evictions)]),
    gauge("dns11_cache_entries", "Replies that are kept.", [sample(entries)]),
    gauge("dns11_cache_size_bytes", "What they take.", [sample(bytes)]),
    gauge("dns11_cache_limit_bytes", "What they may take.", [sample(bytesMax)]),
  ];
}

const STATES = ["attached", "verifying", "opening", "failed", "skipped", "quarantined"] as const;

function containerFamilies(
  containers: readonly ContainerStatus[],
  counts: ContainerMetrics,
  isConnected: boolean | undefined,
): Family[] {
  const told = counts.hasContainerSeries ? counts.containers() : [];
  return [
    gauge(
      "dns11_containers",
      "Running containers, by what dns11 does for them.",
      STATES.map((state) => sample(containers.filter((one) => one.state === state).length, { state })),
    ),
    counter(
      "dns11_attach_failures_total",
      "Times that a container was handed back to Docker's resolver or could not be attached, by code.",
      byCode(counts.attachFailures),
    ),
    counter(
      "dns11_rule_repairs_total",
      "Containers that were attached again after that, by what had been wrong.",
      byCode(counts.repairs),
    ),
    gauge(
      "dns11_engine_connected",
      "1 while the engine's events are followed.",
      isConnected === undefined ? [] : [sample(Number(isConnected))],
    ),
    counter("dns11_engine_losses_total", "Times that the engine's events were lost.", [sample(counts.engineLosses)]),
    counter("dns11_inspect_failures_total", "Containers that could not be looked at; they are again, later.", [
      sample(counts.inspectFailures),
    ]),
    histogram("dns11_event_lag_seconds", "From an event of the engine's to what follows from it being done.", [
      [{}, counts.eventLag, [0]],
    ]),
    counter(
      "dns11_container_requests_total",
      "Queries of a container; those of containers without a series of their own are under other.",
      told.map(([container, { queries }]) => sample(queries, { container })),
    ),
    counter(
      "dns11_container_answers_total",
      "Where a container's queries got their answers.",
      told.flatMap(([container, { local, cached, forwarded }]) => [
        sample(local, { container, by: "local" }),
        sample(cached, { container, by: "cache" }),
        sample(forwarded, { container, by: "upstream" }),
      ]),
    ),
    counter(
      "dns11_container_failures_total",
      "What went wrong with a container's queries.",
      told.flatMap(([container, { malformed, ignored, unsent, refused, failed }]) =>
        Object.entries({ malformed, ignored, unsent, refused, failed }).map(([kind, value]) =>
          sample(value, { container, kind }),
        ),
      ),
    ),
  ];
}

type Labels = Readonly<Record<string, string>>;
/** The labels, and which series of the histogram they stand for. */
type Row = readonly [Labels, Histogram, readonly number[]];

function sample(value: number, labels: Labels = {}): Sample {
  return { labels, value };
}

/** A series begins when there is something to tell; a family that has none yet begins with nothing. */
function nonZero(samples: readonly Sample[]): Sample[] {
  return samples.filter(({ value }) => value > 0);
}

function byCode(counts: ReadonlyMap<string, number>): Sample[] {
  return [...counts].map(([code, value]) => sample(value, { code }));
}

function counter(name: string, help: string, values: readonly Sample[]): Family {
  return { name, help, type: "counter", values };
}

function gauge(name: string, help: string, values: readonly Sample[]): Family {
  return { name, help, type: "gauge", values };
}

function histogram(name: string, help: string, rows: readonly Row[]): Family {
  const values = rows.flatMap(([labels, from, series]) => {
    const read = from.read(series);
    const isTold = (read.atMost.at(-1) ?? 0) > 0 || Object.keys(labels).length === 0;
    return isTold ? distribution(name, labels, read) : [];
  });
  return { name, help, type: "histogram", values };
}

function distribution(name: string, labels: Labels, { bounds, atMost, sum }: Distribution): Sample[] {
  const all = atMost.at(-1) ?? 0;
  return [
    ...bounds.map((bound, index) => bucket(name, labels, String(bound), atMost[index] ?? 0)),
    bucket(name, labels, "+Inf", all),
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: all },
  ];
}

function bucket(name: string, labels: Labels, le: string, value: number): Sample {
  return { metricName: `${name}_bucket`, labels: { ...labels, le }, value };
}
