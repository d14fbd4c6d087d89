/**
 * Metrics: every metric family with its help text, computed from existing counters. Names and labels are those of CoreDNS,
 * with the prefix `dns11_`, where the meaning is the same. Two families also have the names that moby has proposed for its
 * own resolver.
 */
import { createHash } from "node:crypto";
import { LOCAL_SOURCES } from "../base/model/local-source.ts";
import type { Histogram, Distribution } from "../base/lib/histogram.ts";
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
import type { SettingOrigins } from "../base/model/setting-origins.ts";
import type { ContainerStatus } from "../api/status.ts";
import { type Family, type Sample, type Labels, counter, gauge, sample } from "./exposition.ts";
import type { ContainerMetrics } from "./container-metrics.ts";
import { readFileSync, readdirSync, statSync } from "node:fs";

/** Current values of the cache and the upstream servers. */
export interface QueryReadings {
  readonly entries: number;
  readonly bytes: number;
  readonly bytesMax: number;
  /** The host's nameservers that were queried. */
  readonly nameservers: readonly { readonly server: string; readonly isUp: boolean }[];
}

/** The sources of all metrics; undefined ones do not exist yet. */
export interface MetricsSource {
  readonly version: string;
  readonly settings: SettingOrigins;
  readonly reloads: { readonly done: number; readonly failed: number };
  readonly isReady: boolean;
  /** The maximum number of file descriptors. */
  readonly descriptorsMax: number;
  readonly serving?: {
    readonly meter: Meter;
    readonly readings: QueryReadings;
    readonly counts: ContainerMetrics;
    readonly containers: readonly Pick<ContainerStatus, "state">[];
    /** undefined without an engine. */
    readonly isConnected: boolean | undefined;
    readonly features: readonly Family[];
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
          ...joined(serving.features),
        ]),
    ...processFamilies(source.descriptorsMax),
  ];
}

function processInfoFamilies({ version, settings, reloads, isReady }: MetricsSource): Family[] {
  const hash = createHash("sha512").update(JSON.stringify(settings)).digest("hex");
  return [
    gauge("dns11_build_info", "Version of dns11 and of Node.js; always 1.", [
      sample(1, { version, node: process.versions.node }),
    ]),
    gauge("dns11_ready", "1 once every container has been processed, until shutdown begins; otherwise 0.", [
      sample(Number(isReady)),
    ]),
    counter("dns11_reloads_total", "Successful reloads of the settings.", [sample(reloads.done)]),
    counter("dns11_reload_failed_total", "Failed reloads of the settings; the previous settings stay in effect.", [
      sample(reloads.failed),
    ]),
    gauge("dns11_reload_version_info", "Hash of the effective settings; always 1.", [
      sample(1, { hash: "sha512", value: hash }),
    ]),
  ];
}

/** Families of the same name are one, with the samples of all: both tests and policies have a say in queries. */
function joined(families: readonly Family[]): Family[] {
  const byName = new Map<string, Family>();
  for (const family of families) {
    const known = byName.get(family.name);
    const values = known === undefined ? family.values : [...known.values, ...family.values];
    byName.set(family.name, { ...family, values });
  }
  return [...byName.values()];
}

function queryFamilies(meter: Meter): Family[] {
  meter.collect();
  const requests = PROTOCOLS.flatMap((proto, protocol) =>
    FAMILIES.flatMap((family, at) =>
      TYPE_NAMES.map((type, index) => sample(meter.requests(protocol, at, index), { proto, family, type })),
    ),
  );
  const all = Array.from({ length: meter.durations.series }, (_, series) => series);
  return [
    counter(
      "dns11_dns_requests_total",
      "DNS queries of containers, by protocol, address family and type.",
      nonZero(requests),
    ),
    counter(
      "dns11_dns_responses_total",
      "DNS responses to containers, by rcode.",
      nonZero(RCODE_NAMES.map((rcode, index) => sample(meter.responses(index), { rcode }))),
    ),
    counter(
      "dns11_local_answers_total",
      "Queries answered locally, by source of the name.",
      LOCAL_SOURCES.map(({ key }, index) => sample(meter.localAnswers(index), { source: key })),
    ),
    histogram(
      "dns11_dns_request_duration_seconds",
      "Time from the arrival of a query to its response; without what the kernel answers.",
      [[{}, meter.durations, all]],
    ),
    histogram(
      "libnetwork_resolver_query_duration_seconds",
      "Time from the arrival of a query to its response, by type, protocol and outcome (the name that moby has proposed).",
      TYPE_NAMES.flatMap((qtype, type) =>
        PROTOCOLS.flatMap((proto, protocol) =>
          OUTCOMES.map((outcome, at): Row => {
            return [{ qtype, proto, outcome }, meter.durations, [durationSeries(type, protocol, at)]];
          }),
        ),
      ),
    ),
    counter("dns11_dns_dropped_total", "Packets dropped because they are not valid queries.", [
      sample(meter.counts.dropped),
    ]),
    counter("dns11_forward_max_concurrent_rejects_total", "Queries refused because too many queries were in flight.", [
      sample(meter.counts.refused),
    ]),
    counter("dns11_internal_errors_total", "Internal errors of dns11, by queries and other events.", [
      sample(meter.counts.defects),
    ]),
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
      "Time from a query to an upstream server to its reply, by server and rcode.",
      servers.flatMap(([to, at]) =>
        RCODE_NAMES.map((rcode, result): Row => [{ to, rcode }, meter.upstream, seriesOf(at, result)]),
      ),
    ),
    counter(
      "dns11_proxy_failures_total",
      "Queries to an upstream server without a reply, by server and reason.",
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
      "Time of queries to upstream servers, by protocol and result (the name that moby has proposed).",
      PROTOCOLS.flatMap((proto, protocol) =>
        RESULTS.map((result, index): Row => {
          return [{ proto, result }, meter.upstream, servers.map(([, at]) => upstreamSeries(at, protocol, index))];
        }),
      ),
    ),
    gauge(
      "dns11_upstream_up",
      "1 if a nameserver of the host is up, 0 if it is down and queried last.",
      nameservers.map(({ server, isUp }) => sample(Number(isUp), { to: server })),
    ),
  ];
}

function cacheFamilies({ cache }: Meter, { entries, bytes, bytesMax }: QueryReadings): Family[] {
  return [
    counter("dns11_cache_hits_total", "Cache hits, by type: positive (success) or negative (denial) replies.", [
      sample(cache.hits, { type: "success" }),
      sample(cache.denials, { type: "denial" }),
    ]),
    counter("dns11_cache_misses_total", "Cache misses.", [sample(cache.misses)]),
    counter("dns11_cache_served_stale_total", "Expired answers served because upstream servers failed.", [
      sample(cache.stale),
    ]),
    counter("dns11_cache_prefetch_total", "Cache entries refreshed before they expired.", [sample(cache.prefetches)]),
    counter("dns11_cache_evictions_total", "Cache entries evicted because the cache was full.", [
      sample(cache.evictions),
    ]),
    gauge("dns11_cache_entries", "Number of cache entries.", [sample(entries)]),
    gauge("dns11_cache_size_bytes", "Size of the cache in bytes.", [sample(bytes)]),
    gauge("dns11_cache_limit_bytes", "Maximum size of the cache in bytes.", [sample(bytesMax)]),
  ];
}

const STATES = ["attached", "verifying", "opening", "failed", "skipped", "quarantined"] as const;

function containerFamilies(
  containers: readonly Pick<ContainerStatus, "state">[],
  counts: ContainerMetrics,
  isConnected: boolean | undefined,
): Family[] {
  const series = counts.hasContainerSeries ? counts.containers() : [];
  return [
    gauge(
      "dns11_containers",
      "Running containers, by state.",
      STATES.map((state) => sample(containers.filter((one) => one.state === state).length, { state })),
    ),
    counter(
      "dns11_attach_failures_total",
      "Containers handed back to Docker's resolver or not attached because of a failure, by code.",
      byCode(counts.attachFailures),
    ),
    counter(
      "dns11_rule_repairs_total",
      "Containers attached again after a failure, by its code.",
      byCode(counts.repairs),
    ),
    gauge(
      "dns11_engine_connected",
      "1 while dns11 receives events from the engine; otherwise 0.",
      isConnected === undefined ? [] : [sample(Number(isConnected))],
    ),
    counter("dns11_engine_losses_total", "Times that the event stream of the engine was lost.", [
      sample(counts.engineLosses),
    ]),
    counter("dns11_inspect_failures_total", "Failed inspections of containers, which are retried later.", [
      sample(counts.inspectFailures),
    ]),
    histogram("dns11_event_lag_seconds", "Time from an event of the engine until it has been processed.", [
      [{}, counts.eventLag, [0]],
    ]),
    counter(
      "dns11_container_requests_total",
      "Queries, by container; containers without their own series are counted as (other).",
      ofEach(series, (container, { queries }) => [sample(queries, { container })]),
    ),
    counter(
      "dns11_container_answers_total",
      "Answered queries, by container and by the source of the answer.",
      ofEach(series, (container, { local, kernel, kernelCached, cached, forwarded }) => [
        sample(local - (kernel - kernelCached), { container, by: "local" }),
        ...nonZero([sample(kernel, { container, by: "kernel" })]),
        sample(cached - kernelCached, { container, by: "cache" }),
        sample(forwarded, { container, by: "upstream" }),
      ]),
    ),
    counter(
      "dns11_container_failures_total",
      "Failed queries, by container and by kind of failure.",
      ofEach(series, (container, { malformed, ignored, unsent, refused, failed }) =>
        Object.entries({ malformed, ignored, unsent, refused, failed }).map(([kind, value]) =>
          sample(value, { container, kind }),
        ),
      ),
    ),
  ];
}

/** Made as they are read: there may be ten thousand. */
function* ofEach(
  series: ReturnType<ContainerMetrics["containers"]>,
  samplesOf: (container: string, totals: (typeof series)[number][1]) => readonly Sample[],
): Generator<Sample> {
  for (const [container, totals] of series) yield* samplesOf(container, totals);
}

/** Labels, and the series of the histogram that they select. */
type Row = readonly [Labels, Histogram, readonly number[]];

/** Leaves out samples that are still zero. */
function nonZero(samples: readonly Sample[]): Sample[] {
  return samples.filter(({ value }) => value > 0);
}

function byCode(counts: ReadonlyMap<string, number>): Sample[] {
  return [...counts].map(([code, value]) => sample(value, { code }));
}

function histogram(name: string, help: string, rows: readonly Row[]): Family {
  const values = rows.flatMap(([labels, from, series]) => {
    const read = from.read(series);
    const isShown = (read.atMost.at(-1) ?? 0) > 0 || Object.keys(labels).length === 0;
    return isShown ? distribution(name, labels, read) : [];
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

const USEC = 1_000_000;
/** Computed only once: a value that moves with the clock would look like a restart. */
const START_SECONDS = Date.now() / 1_000 - process.uptime();

/** The standard process metrics of Prometheus clients, read from /proc at each scrape. */
function processFamilies(descriptorsMax: number): Family[] {
  const { user, system } = process.cpuUsage();
  return [
    single(
      "process_cpu_seconds_total",
      "counter",
      "Total user and system CPU time in seconds.",
      (user + system) / USEC,
    ),
    single("process_resident_memory_bytes", "gauge", "Resident memory size in bytes.", process.memoryUsage.rss()),
    single(
      "process_start_time_seconds",
      "gauge",
      "Start time of the process since the Unix epoch in seconds.",
      START_SECONDS,
    ),
    single("process_open_fds", "gauge", "Number of open file descriptors.", openDescriptors()),
    ...(Number.isFinite(descriptorsMax)
      ? [single("process_max_fds", "gauge", "Maximum number of open file descriptors.", descriptorsMax)]
      : []),
    single("process_threads", "gauge", "Number of threads.", threads()),
  ];
}

/** Since Linux 6.2 the kernel has their number. To list the ten thousand of a thousand containers takes milliseconds. */
function openDescriptors(): number {
  return statSync("/proc/self/fd").size || readdirSync("/proc/self/fd").length;
}

function threads(): number {
  return Number(/^Threads:\s*(\d+)/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1] ?? 0);
}

function single(name: string, type: Family["type"], help: string, value: number): Family {
  return { name, type, help, values: [{ labels: {}, value }] };
}

interface HostAddressReadings {
  readonly name: string;
  /** Whether it answers at all of its addresses. */
  readonly isServing: boolean;
  readonly queries: number;
  /** What got no reply, by reason. */
  readonly refused: Readonly<Record<string, number>>;
  /** Queries that found a socket's buffer full. */
  readonly lost: number;
}

/**
 * What arrives at addresses of the host, and what got no reply there: of all that answer at such addresses in the same families.
 * `dropped`: what rules have dropped before it reached any of them, by reason, under a name of its own.
 */
export function hostAddressFamilies(
  places: readonly HostAddressReadings[],
  dropped?: { readonly name: string; readonly refused: Readonly<Record<string, number>> },
): Family[] {
  const queries = places.map((each) => sample(each.queries, { listener: each.name }));
  const lost = places.map((each) => sample(each.lost, { listener: each.name }));
  const serving = places.map((each) => sample(Number(each.isServing), { listener: each.name }));
  return [
    counter("dns11_listener_queries_total", "UDP queries and TCP connections at addresses of the host.", queries),
    counter(
      "dns11_listener_refused_total",
      "Packets and TCP connections at addresses of the host that got no reply, by reason.",
      [...places, ...(dropped === undefined ? [] : [dropped])].flatMap(({ refused, name }) => byReason(refused, name)),
    ),
    counter(
      "dns11_listener_lost_total",
      "UDP queries at addresses of the host that were lost because dns11 did not read them in time.",
      lost,
    ),
    gauge("dns11_listener_serving", "Whether dns11 answers at all of its addresses of the host.", serving),
  ];
}

function byReason(counts: Readonly<Record<string, number>>, listener: string): Sample[] {
  return Object.entries(counts).map(([reason, count]) => sample(count, { listener, reason }));
}
