/**
 * MonitoringRoutes: the endpoints for monitoring: /metrics, /health and /ready.
 */
import type { LifecycleReport, ProbesReport, ProbesRequest } from "../../api/status.ts";
import { LIMITS } from "../../base/limits.ts";
import { CoalescedCall } from "../../base/lib/async.ts";
import { printable, printableJson } from "../../base/lib/text.ts";
import type { ProbeResult } from "../explain/lookup.ts";
import { TextResponse, type Routes, type ApiRequest } from "../server/http.ts";
import { Fault, codeOf } from "../../base/lib/fault.ts";
import { findContainer, namespaceOwner } from "../situation/find-container.ts";
import { type ControlPorts, followedContainer } from "../situation/ports.ts";
import type { FailuresReport } from "../../api/failures.ts";
import type { FailureTables } from "../../query/failures/failure-table.ts";
import { COMPOSE_KEYS, type ComposeFilter } from "../situation/address-owners.ts";
import type { FailureReader } from "../failures/failure-reader.ts";
import { isTrue, refuseUnknown } from "../server/parameters.ts";

const OK = 200;
const NOT_FOUND = 404;
const UNAVAILABLE = 503;
const EXPOSITION = "text/plain; version=0.0.4; charset=utf-8";

interface MonitoringSources {
  /** The metrics in Prometheus' text format. */
  readonly metrics: () => Promise<string>;
  readonly life: () => LifecycleReport;
  /** Undefined where no probe has this page. */
  readonly probe: (page: string) => Promise<ProbeResult | undefined>;
}

export function monitoringRoutes(sources: MonitoringSources): Routes {
  const health = (): TextResponse => new TextResponse(OK, "text/plain; charset=utf-8", "OK\n");
  const ready = new CoalescedCall(() => {
    const report = sources.life();
    return new TextResponse(report.ready ? OK : UNAVAILABLE, "application/json", `${printableJson(report)}\n`);
  }, LIMITS.pageEveryMs);
  const metrics = new CoalescedCall(
    async () => new TextResponse(OK, EXPOSITION, await sources.metrics()),
    LIMITS.pageEveryMs,
  );
  return {
    "GET /metrics": async () => await metrics.get(),
    "GET /health": health,
    "GET /healthz": health,
    "GET /ready": async () => await ready.get(),
    "GET /readyz": async () => await ready.get(),
    "GET /readiness": async () => await ready.get(),
    "GET /healthz-*": async ({ rest }) => probeResponse(await sources.probe(rest)),
  };
}

function probeResponse(result: ProbeResult | undefined): TextResponse {
  const { isHealthy, text } = result ?? {
    isHealthy: false,
    text: "no probe has this page: see the setting health-probes",
  };
  const status = result === undefined ? NOT_FOUND : isHealthy ? OK : UNAVAILABLE;
  return new TextResponse(status, "text/plain; charset=utf-8", `${printable(text)}\n`);
}

const PORT_MAX = 0xffff;
const USE = 'use {"container": "NAME", "udp": [PORT], "tcp": [PORT]}';

/**
 * `POST /v1/probes`: the doctor, a process of its own, announces the source ports of its test queries, which count nowhere as queries of
 * the container. Returns how many were announced: none where the container is not served, and so has no queries recorded.
 */
export function announceProbes({ containers }: ControlPorts, body: unknown): ProbesReport {
  const { container, udp, tcp } = probesIn(body);
  const owner = namespaceOwner(containers.facts, findContainer(containers.facts.values(), container));
  const client = containers.clients.of(owner.id);
  if (client === undefined) return { announced: 0 };
  for (const port of udp) client.ownQueries.announce(false, port, true);
  for (const port of tcp) client.ownQueries.announce(true, port, true);
  return { announced: udp.length + tcp.length };
}

function probesIn(body: unknown): ProbesRequest {
  if (typeof body !== "object" || body === null) throw new Fault("BAD_BODY", `Invalid request body: ${USE}`);
  const { container, udp = [], tcp = [] } = body as Readonly<Record<string, unknown>>;
  if (typeof container !== "string" || container === "" || !arePorts(udp) || !arePorts(tcp)) {
    throw new Fault("BAD_BODY", `Invalid request body: ${USE}`);
  }
  return { container, udp, tcp };
}

function arePorts(value: unknown): value is number[] {
  return (
    Array.isArray(value) &&
    value.length <= LIMITS.ownQueries &&
    value.every((port) => Number.isInteger(port) && port > 0 && port <= PORT_MAX)
  );
}

interface FailureRouteParts {
  readonly failures: FailureTables;
  readonly reader: FailureReader;
  /** The ID of a container by its name or the beginning of its ID; throws a Fault if no served container matches. */
  readonly find: (nameOrId: string) => string;
  /** That of a container that the engine has and that does not run. */
  readonly findStopped: (nameOrId: string) => Promise<string | undefined>;
  readonly nameOf: (containerId: string) => string | undefined;
  readonly composeFilterOf: (query: ApiRequest["query"]) => Promise<ComposeFilter | undefined>;
  /** What features say of these containers. */
  readonly ofFeatures: (isChosen: (containerId: string) => boolean) => Partial<FailuresReport>;
}

const KEYS: readonly string[] = ["container", ...COMPOSE_KEYS, "follow"];

/** `GET /v1/failures` with `container`, `project`, `service`, and `follow=true` (each failure again whenever it happens again). */
export function failureRoutes(parts: FailureRouteParts): Routes {
  const { failures, reader, nameOf, composeFilterOf, ofFeatures } = parts;
  return {
    "GET /v1/failures": async ({ query, signal }: ApiRequest) => {
      refuseUnknown(query, KEYS);
      if (!failures.isEnabled) {
        throw new Fault("QUERIES_OFF", "Failures are not recorded, because queries.names is off", {
          remedy: "Set queries.names to full or hidden.",
        });
      }
      const container = query.get("container");
      const id = container === null || container === "" ? undefined : await idOf(container, parts);
      const compose = await composeFilterOf(query);
      if (isTrue(query, "follow")) {
        const isFollowed = id === undefined ? () => true : followedContainer(container ?? "", id, nameOf);
        return reader.follow(signal, (each) => isFollowed(each) && compose?.acceptsId(each) !== false);
      }
      const filter = { containerId: id, ...compose };
      const more = ofFeatures((each) => (id === undefined || each === id) && filter.acceptsId?.(each) !== false);
      return { ...(await reader.read(filter)), ...more };
    },
  };
}

/** A running container takes precedence over one that has ended and had the same name. */
async function idOf(
  nameOrId: string,
  { failures, find, findStopped }: Pick<FailureRouteParts, "failures" | "find" | "findStopped">,
): Promise<string> {
  try {
    return find(nameOrId);
  } catch (error) {
    if (codeOf(error) !== "NO_SUCH_CONTAINER") throw error;
    const ended = (await findStopped(nameOrId)) ?? endedContainer(failures, nameOrId);
    if (ended === undefined) throw error;
    return ended;
  }
}

/** The ID of a container that has ended, but whose failures are still recorded. */
function endedContainer(failures: FailureTables, nameOrId: string): string | undefined {
  for (const { containerId, containerName } of failures.tables()) {
    if (containerName !== undefined && (containerName === nameOrId || containerId.startsWith(nameOrId)))
      return containerId;
  }
  return undefined;
}
