/**
 * Routes: the API of the control socket, by method and path. Paths begin with the API version; within one version, responses
 * may gain fields but lose none.
 */
import type { CountersReport } from "../../api/queries.ts";
import type { RepairReport } from "../../api/status.ts";
import { Fault, codeOf } from "../../base/lib/fault.ts";
import { LIMITS } from "../../base/limits.ts";
import { FailureReader } from "../failures/failure-reader.ts";
import { type ComposeFilter, composeFilterOf, COMPOSE_KEYS } from "../situation/address-owners.ts";
import { findContainer, isShared, sharedOwner, stoppedCalled } from "../situation/find-container.ts";
import type { ApiRequest, Routes } from "../server/http.ts";
import type { ControlPorts } from "../situation/ports.ts";
import { Situations } from "../situation/situations.ts";
import { announceProbes, failureRoutes } from "./monitoring-routes.ts";
import { QueryDetails } from "../reports/query-details.ts";
import { listContainers, listNetworks } from "../reports/list-containers.ts";
import { matrix } from "../reports/matrix.ts";
import { isTrue, numberOf, refuseUnknown } from "../server/parameters.ts";
import { listNames } from "../reports/name-resolver.ts";
import { cacheEntries, cacheReport, flushCache } from "../reports/cache-entries.ts";
import { explain } from "../explain/explain.ts";
import { lookup } from "../explain/lookup.ts";
import { upstreams } from "../reports/upstreams.ts";
import { findEndedContainer, queryRoutes } from "./query-routes.ts";

type Body = Readonly<Record<string, unknown>>;

/** The default of `last`. */
const DEFAULT_LAST = 100;

export function routesOf(ports: ControlPorts): Routes {
  const { histories, reader } = ports;
  const nameOf = (containerId: string): string | undefined => ports.containers.facts.get(containerId)?.name;
  return {
    "GET /v1/status": ports.status,
    "POST /v1/probes": ({ body }) => announceProbes(ports, body),
    "POST /v1/repair": async (call) => await repair(ports, call),
    ...queryRoutes({
      histories,
      reader,
      details: new QueryDetails(ports),
      find: (nameOrId) => findClient(ports, nameOrId),
      nameOf,
      composeFilterOf: async (query) => await composeFilterOf(query, ports),
      counters: (filter) => countersOf(ports, filter),
    }),
    ...failureRoutes({
      failures: ports.failures,
      reader: new FailureReader(ports),
      find: (nameOrId) => findClient(ports, nameOrId),
      findStopped: async (nameOrId) => {
        const { known } = await Situations.open(ports);
        return stoppedCalled(known.all, nameOrId)?.id;
      },
      nameOf,
      composeFilterOf: async (query) => await composeFilterOf(query, ports),
      ofFeatures: ports.failuresOfFeatures,
    }),
    ...nameRoutes(ports),
    ...containerRoutes(ports),
    ...eventRoutes(ports),
    ...resolverRoutes(ports),
  };
}

/** The ID of a container that is served, or was. */
function findClient({ containers, histories }: ControlPorts, nameOrId: string): string {
  let fact;
  try {
    fact = findContainer(containers.facts.values(), nameOrId);
  } catch (error) {
    const ended = codeOf(error) === "NO_SUCH_CONTAINER" ? findEndedContainer(histories, nameOrId) : undefined;
    if (ended === undefined) throw error;
    return ended;
  }
  const decision = containers.decisionOf(fact.id);
  // One that is not served in its namespace may have asked the listener.
  if (decision?.kind !== "skip" || containers.clients.of(fact.id) !== undefined) return fact.id;
  // Its queries come from the namespace of another container.
  const other = sharedOwner(containers.facts, fact);
  // Nothing that is in the namespace that this one has left is known of that one.
  if (isShared(fact)) return other === undefined || other.startedAt > fact.startedAt ? fact.id : other.id;
  throw new Fault("NOT_SERVED", `dns11 does not serve "${fact.name}": ${decision.reason}`);
}

function countersOf({ containers }: ControlPorts, filter: ComposeFilter | undefined): CountersReport {
  const all = [...containers.facts.values()].flatMap(({ id, name }) => {
    const attachment = containers.attachmentOf(id);
    // One that is not served in its namespace may have asked the listener.
    const counters = attachment?.endpoint?.counters ?? containers.clients.of(id)?.counters;
    if ((attachment === undefined && counters === undefined) || filter?.acceptsId(id) === false) return [];
    return [{ container: name, counters: counters ?? {} }];
  });
  return { containers: all };
}

/** Verifies a container and attaches it again if needed; returns the outcome. */
async function repair({ containers, repairs }: ControlPorts, { body }: ApiRequest): Promise<RepairReport> {
  const nameOrId = typeof body === "object" && body !== null && "container" in body ? body.container : undefined;
  if (typeof nameOrId !== "string" || nameOrId === "") {
    throw new Fault("NO_CONTAINER", 'Field missing: use {"container": "NAME"}');
  }
  const { id, name } = findContainer(containers.facts.values(), nameOrId);
  return { name, outcome: await repairs.repair(id) };
}

/** Containers, networks, and which containers can resolve which services. */
function containerRoutes(ports: ControlPorts): Routes {
  return {
    "GET /v1/containers": async (call) => await listContainers(ports, call),
    "GET /v1/networks": async (call) => await listNetworks(ports, call),
    "GET /v1/matrix": async (call) => await matrix(ports, call),
  };
}

/**
 * `GET /v1/events` with `last` (how many), `since` (a number), and `follow=true` (each event as it happens), and
 * `GET /v1/history`.
 */
function eventRoutes(ports: ControlPorts): Routes {
  return {
    "GET /v1/events": ({ query, signal }) => {
      refuseUnknown(query, ["last", "since", "follow"]);
      const last = numberOf(query, "last", LIMITS.events) ?? DEFAULT_LAST;
      const since = numberOf(query, "since", Number.MAX_SAFE_INTEGER);
      if (!isTrue(query, "follow")) return ports.events.read(last, since);
      if (since !== undefined)
        throw new Fault("BAD_QUERY", "The parameter since cannot be combined with follow: use last");
      return ports.events.follow(last, signal);
    },
    "GET /v1/history": () => ports.history.report(),
  };
}

/**
 * `GET /v1/names` with `container` (as that container resolves them), `project` and `service` (only names that
 * their containers have).
 */
function nameRoutes(ports: ControlPorts): Routes {
  return {
    "GET /v1/names": async ({ query }) => {
      refuseUnknown(query, ["container", ...COMPOSE_KEYS]);
      const word = query.get("container") ?? "";
      const fact = word === "" ? undefined : findContainer(ports.containers.facts.values(), word);
      return await listNames(ports, fact, await composeFilterOf(query, ports));
    },
  };
}

/**
 * Lookups, explanations, upstream servers, cache and reload. Request bodies are validated strictly: an unknown
 * field is an error.
 */
function resolverRoutes(ports: ControlPorts): Routes {
  return {
    "POST /v1/lookup": async (call) => {
      const body = fieldsOf(call, ["container", "name", "type", "tcp", "search"]);
      const lookupRequest = {
        ...nameRequest(body),
        tcp: booleanField(body, "tcp"),
        search: booleanField(body, "search"),
      };
      return await lookup(ports, lookupRequest, call.signal);
    },
    "POST /v1/explain": async (call) => {
      return await explain(ports, nameRequest(fieldsOf(call, ["container", "name", "type"])), call.signal);
    },
    "GET /v1/upstreams": async () => await upstreams(ports),
    "GET /v1/cache": () => cacheReport(ports),
    "GET /v1/cache/entries": async (call) => await cacheEntries(ports, call),
    "POST /v1/cache/flush": (call) => flushCache(ports, textField(fieldsOf(call, ["name"]), "name")),
    "POST /v1/reload": async () => await ports.reload(),
  };
}

function fieldsOf({ body }: ApiRequest, keys: readonly string[]): Body {
  if (body === undefined) return {};
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw new Fault("BAD_BODY", `Invalid request body: use a JSON object with the fields ${keys.join(", ")}`);
  }
  const unknown = Object.keys(body).find((key) => !keys.includes(key));
  if (unknown !== undefined) throw new Fault("BAD_BODY", `Unknown field "${unknown}": use ${keys.join(", ")}`);
  return body as Body;
}

function nameRequest(body: Body): { container: string; name: string; type: string | undefined } {
  const container = textField(body, "container");
  const name = textField(body, "name");
  if (container === undefined) throw new Fault("BAD_BODY", 'Field missing: "container"');
  if (name === undefined) throw new Fault("BAD_BODY", 'Field missing: "name"');
  return { container, name, type: textField(body, "type") };
}

function textField(body: Body, key: string): string | undefined {
  const value = body[key];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "string" || value === "")
    throw new Fault("BAD_BODY", `Invalid value for "${key}": use a non-empty string`);
  return value;
}

function booleanField(body: Body, key: string): boolean {
  const value = body[key] ?? false;
  if (typeof value !== "boolean") throw new Fault("BAD_BODY", `Invalid value for "${key}": use true or false`);
  return value;
}
