/**
 * Sample: data for the page as a run would send it, of any size, where a real engine would take too long or cannot be brought to it: many
 * containers, and names that no engine accepts.
 */
import type { Cause, CauseCode } from "../../../src/api/causes.ts";
import type {
  ContainerNetwork,
  ContainerReport,
  NetworkReport,
  MatrixColumn,
  MatrixRow,
} from "../../../src/api/containers.ts";
import type { EventReport } from "../../../src/api/events.ts";
import type { FailureReport } from "../../../src/api/failures.ts";
import type { Explanation } from "../../../src/api/names.ts";
import type { QueryReport } from "../../../src/api/queries.ts";
import type { Snapshot } from "../../../src/api/snapshot.ts";
import type { Upstream } from "../../../src/api/upstreams.ts";

export interface SampleContainer {
  readonly name: string;
  readonly project?: string;
  readonly service?: string;
  readonly networks: readonly string[];
  /** The name of the one in whose network namespace it is. */
  readonly sharesWith?: string;
  /** The exit code of one that does not run. */
  readonly exitCode?: number;
}

export interface SampleFailure {
  readonly container: string;
  readonly name: string;
  readonly type?: string;
  readonly result?: string;
  readonly code: CauseCode;
  readonly sentence: string;
  /** What has to change, such as a network. */
  readonly about?: string;
  readonly fix?: string;
  /** What to do where no command can do it. */
  readonly advice?: string;
}

export interface Sample {
  readonly containers: readonly SampleContainer[];
  readonly failures?: readonly SampleFailure[];
  readonly queries?: readonly Partial<QueryReport>[];
  readonly nowMs?: number;
}

/** A Compose project in which two names fail. */
export const SHOP_SAMPLE: Sample = {
  containers: [
    { name: "shop-web-1", project: "shop", service: "web", networks: ["shop_front"] },
    { name: "shop-api-1", project: "shop", service: "api", networks: ["shop_front"] },
    { name: "shop-db-1", project: "shop", service: "db", networks: ["shop_back"] },
    { name: "plain", networks: ["bridge"] },
  ],
  failures: [
    {
      container: "shop-api-1",
      name: "db",
      code: "other-network",
      sentence: '"db" is shop-db-1 on network shop_back, which shop-api-1 is not on',
      fix: "docker network connect shop_back shop-api-1",
    },
    {
      container: "shop-web-1",
      name: "wbe",
      code: "similar-name",
      sentence: "no such name",
      advice: 'use the name "web"',
    },
  ],
  queries: Array.from({ length: 40 }, (_, index) => ({ name: `name${index}` })),
};

/** Of one of them. */
export const EXPLANATION_SAMPLE: Explanation = {
  container: { id: "1", name: "shop-api-1" },
  question: { name: "db", type: "A" },
  networks: ["shop_front"],
  steps: [
    { layer: "names", isAnswer: false, why: "no such name on shop_front" },
    {
      layer: "servers",
      isAnswer: true,
      why: "host(10.99.0.1) responded",
      events: [{ atMs: 1.2, server: "host(10.99.0.1)", what: "NXDOMAIN" }],
    },
  ],
  answeredBy: "servers",
  server: "host(10.99.0.1)",
  ms: 1.3,
  reply: null,
  owners: [],
  notServed: null,
  notQueried: null,
  causes: [],
  hints: [],
};

const TEAMS = ["acme-platform-checkout", "acme-platform-warehouse", "shop", "observability"];
const SERVICES: readonly (readonly [name: string, networks: readonly string[]])[] = [
  ["web-frontend-public", ["front"]],
  ["web-frontend-internal", ["front"]],
  ["mail", ["front"]],
  ["api", ["front", "back"]],
  ["payments-gateway-primary", ["front", "back"]],
  ["payments-gateway-fallback", ["front", "back"]],
  ["worker", ["front", "back"]],
  ["db", ["back"]],
  ["cache", ["back"]],
  ["queue", ["back"]],
  ["search-indexer-nightly", ["back"]],
];

/** 44 containers with names that differ at their ends, and a sidecar; in two projects three services are not on a network that they need. */
export function longNames(): Sample {
  const containers = TEAMS.flatMap((project) =>
    SERVICES.map(([service, networks]): SampleContainer => {
      const name = `${project}-${service}-1`;
      return { name, project, service, networks: networks.map((each) => `${project}_${each}`) };
    }),
  );
  const [first = "", second = "", third = ""] = TEAMS;
  const mail = `${first}-mail-1`;
  const sidecar = {
    name: `${first}-mail-proxy-1`,
    project: first,
    service: "mail-proxy",
    networks: [],
    sharesWith: mail,
  };
  return {
    containers: [...containers, sidecar],
    failures: [
      ...[first, second].flatMap((project) =>
        ["web-frontend-public", "web-frontend-internal", "mail"].flatMap((service) =>
          ["db", "cache", "queue", "search-indexer-nightly"].map((name) => notOn(project, service, name)),
        ),
      ),
      ...["one", "two", "three", "four", "five"].map((name): SampleFailure => ({
        container: `${third}-worker-1`,
        name: `gone-${name}`,
        code: "unknown-name",
        sentence: `no container on this engine has the name "gone-${name}"`,
      })),
      { container: `${third}-api-1`, name: "nx.example.com", code: "does-not-exist", sentence: "it does not exist" },
    ],
    queries: Array.from({ length: 40 }, (_, index) => ({
      container: `${first}-payments-gateway-fallback-1`,
      name: `search-indexer-nightly.${first}.internal.region-${index}.example.com`,
    })),
  };
}

function notOn(project: string, service: string, name: string): SampleFailure {
  const [container, network] = [`${project}-${service}-1`, `${project}_back`];
  return {
    container,
    name,
    code: "other-network",
    sentence: `"${name}" is container ${project}-${name}-1 on network ${network}; ${container} is not on ${network}`,
    fix: `docker network connect ${network} ${container}`,
    about: network,
  };
}

/** Many projects, each with a network in front and one behind. */
export function manyContainers(count: number): SampleContainer[] {
  const services = ["web", "api", "worker", "db", "cache", "queue", "mail", "search"];
  return Array.from({ length: count }, (_, index) => {
    const project = `team${Math.floor(index / 25)}`;
    const service = services[index % services.length] ?? "";
    const number = Math.floor((index % 25) / services.length) + 1;
    const networks = { web: ["front"], db: ["back"], cache: ["back"], queue: ["back"] }[service] ?? ["front", "back"];
    return {
      name: `${project}-${service}-${number}`,
      project,
      service,
      networks: networks.map((each) => `${project}_${each}`),
    };
  });
}

export function sampleSnapshot({ containers, failures = [], queries = [], nowMs = Date.now() }: Sample): Snapshot {
  const at = (agoS: number): string => new Date(nowMs - agoS * 1000).toISOString();
  const reports = containers.map((each, index) => containerReport(each, index, at(1_600)));
  return {
    format: 1,
    takenAt: at(0),
    isRedacted: false,
    status: null,
    containers: { containers: reports, omitted: 0 },
    networks: { networks: networksOf(reports), omitted: 0 },
    matrix: { ...matrixOf(reports), omittedColumns: 0, omittedRows: 0 },
    failures: {
      failures: failures.map((each) => failureReport(each, reports, at)),
      misleading: [],
      unwatched: [],
      omitted: 0,
    },
    upstreams: {
      tracksServers: true,
      upstreams: ["10.99.0.1", "10.99.0.2"].map((server) => upstream(server, containers)),
    },
    history: {
      everyMs: 5_000,
      until: at(0),
      rates: {
        queries: wave(60, 40),
        local: wave(60, 30),
        cached: wave(60, 5),
        forwarded: wave(60, 5),
        nxdomain: wave(60, 2),
        errors: wave(60, 1),
      },
      minutes: {
        until: at(0),
        queries: wave(300, 400).map(Math.round),
        failures: wave(300, 10).map(Math.round),
      },
      servers: ["10.99.0.1", "10.99.0.2"].map((server, index) => ({
        server: `host(${server})`,
        container: null,
        states: Array.from({ length: 60 }, (_, sample) => (index === 1 && sample > 45 ? "down" : "up")),
        rttMs: wave(60, 4 + index * 3),
        queries: wave(60, 10),
      })),
      omitted: 0,
    },
    cache: null,
    events: {
      events: reports.slice(0, 40).map((each, index) => startEvent(each, index, at)),
      missed: 0,
      last: reports.length,
    },
    queries: {
      queries: queries.map((each, index) => ({ ...QUERY, time: at(index), seq: index, ...each })),
      missed: 0,
      last: null,
    },
    errors: [],
  };
}

const QUERY: QueryReport = {
  container: "shop-web-1",
  seq: 0,
  time: "",
  name: "api",
  type: "A",
  rcode: "NOERROR",
  answers: 1,
  addresses: ["172.18.0.2"],
  ttl: 5,
  transport: "udp",
  result: "local",
  source: "network",
  upstream: null,
  ms: 0,
};

function containerReport(sample: SampleContainer, index: number, since: string): ContainerReport {
  const { name, project = null, service = null, networks, sharesWith, exitCode = null } = sample;
  const isRunning = exitCode === null;
  return {
    id: index.toString(16).padStart(64, "0"),
    name,
    project,
    service,
    state: isRunning ? "running" : "exited",
    exitCode,
    since,
    health: null,
    dns: !isRunning ? null : sharesWith === undefined ? "attached" : "skipped",
    ...(sharesWith !== undefined && { sharesWith }),
    code: null,
    reason: null,
    networks: networks.map((network): ContainerNetwork => ({
      network,
      hasNames: network !== "bridge",
      names: [name, ...(service === null ? [] : [service])],
      ipv4: isRunning ? `172.18.${index >> 8}.${index & 255}` : null,
      ipv6: null,
    })),
    upstreams: ["host(10.99.0.1)", "host(10.99.0.2)"],
  };
}

function networksOf(reports: readonly ContainerReport[]): NetworkReport[] {
  const names = [...new Set(reports.flatMap(({ networks }) => networks.map(({ network }) => network)))].toSorted();
  return names.map((name, index) => ({
    id: `n${index}`,
    name,
    driver: "bridge",
    scope: "local",
    isInternal: false,
    hasNames: name !== "bridge",
    project: name.includes("_") ? (name.split("_")[0] ?? null) : null,
    subnets: [],
    members: [],
  }));
}

function matrixOf(reports: readonly ContainerReport[]): { columns: MatrixColumn[]; rows: MatrixRow[] } {
  const targets = new Map<string, ContainerReport[]>();
  for (const each of reports) {
    const key = JSON.stringify([each.project, each.service ?? each.name]);
    targets.set(key, [...(targets.get(key) ?? []), each]);
  }
  const columns = [...targets.values()].map((members): MatrixColumn => {
    const [first] = members;
    const { project = null, service = null, name = "" } = first ?? {};
    const containers = members.map((each) => each.name);
    return {
      name: service ?? name,
      project,
      service,
      containers,
      running: members.filter(({ dns }) => dns !== null).length,
    };
  });
  const rows = reports
    .filter(({ dns }) => dns !== null)
    .map(({ name, id, project, service, networks, sharesWith }): MatrixRow => {
      const joined = reports.find((each) => each.name === sharesWith)?.networks ?? networks;
      const own = joined.filter(({ hasNames }) => hasNames).map(({ network }) => network);
      const cells = [...targets.values()].map(
        (members) =>
          members.filter((each) => each.dns !== null && each.networks.some(({ network }) => own.includes(network)))
            .length,
      );
      return { container: name, containerId: id, project, service, networks: own, cells };
    });
  return { columns, rows };
}

function failureReport(
  { container, name, type = "A", result = "NXDOMAIN", code, sentence, fix, advice, about }: SampleFailure,
  reports: readonly ContainerReport[],
  at: (agoS: number) => string,
): FailureReport {
  const report = reports.find((each) => each.name === container);
  const isContainerName = !name.includes(".");
  const known = {
    code,
    sentence,
    fix: fix ?? null,
    ...(advice !== undefined && { advice }),
    lastingFix: null,
    isBreaking: isContainerName && code !== "unknown-name",
  };
  const cause: Cause = about === undefined ? known : { ...known, about };
  return {
    container,
    containerId: report?.id ?? "",
    isRunning: true,
    project: report?.project ?? null,
    service: report?.service ?? null,
    name,
    type,
    result,
    count: 240,
    perMinute: 120,
    first: at(180),
    last: at(1),
    lastSuccess: null,
    isContainerName,
    cause,
  };
}

function upstream(address: string, containers: readonly SampleContainer[]): Upstream {
  return {
    server: `host(${address})`,
    address,
    port: 53,
    from: "host",
    container: null,
    isBackup: false,
    uses: [{ domain: ".", by: null, containers: containers.map(({ name }) => name) }],
    state: address.endsWith("2") ? "down" : "up",
    since: null,
    reason: address.endsWith("2") ? "ECONNREFUSED" : null,
    rttMs: 2.4,
    deviationMs: 0.3,
    counters: { queries: 300, answers: 290, useless: 4, unreachable: 6 },
    edns: true,
    isLooping: null,
    loopsUntil: null,
  };
}

function startEvent(
  { name, id, project, service }: ContainerReport,
  index: number,
  at: (agoS: number) => string,
): EventReport {
  const event = { containerId: id, project, service, network: null, server: null, detail: null, exitCode: null };
  return { number: index, time: at(600 - index), kind: "container-started", container: name, ...event };
}

/** The same at each run, so that pictures can be compared. */
function wave(count: number, height: number): number[] {
  return Array.from(
    { length: count },
    (_, index) => height * (1 + 0.5 * Math.sin(index / 4) + 0.25 * Math.sin(index * 1.7)),
  );
}
