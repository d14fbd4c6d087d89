/**
 * Routes: the API of the control socket, by method and path. Paths begin with the API version; within one version, responses
 * may gain fields but lose none.
 */
import type { CountersReport } from "../../api/queries.ts";
import type { RepairReport } from "../../api/status.ts";
import { Fault, codeOf } from "../../base/lib/fault.ts";
import { FailureReader } from "../failures/failure-reader.ts";
import { failureRoutes } from "./failure-routes.ts";
import { type ComposeFilter, composeFilterOf } from "../situation/compose-filter.ts";
import { containerRoutes } from "./container-routes.ts";
import { egressRoutes } from "./egress-routes.ts";
import { eventRoutes } from "./event-routes.ts";
import { findContainer } from "../containers/find-container.ts";
import type { ApiRequest, Routes } from "../server/http.ts";
import type { ControlPorts } from "../situation/ports.ts";
import { announceProbes } from "../reports/probes.ts";
import { QueryDetails } from "../reports/query-details.ts";
import { findEndedContainer, queryRoutes } from "./query-routes.ts";
import { leaseRoutes } from "./lease-routes.ts";
import { nameRoutes } from "./name-routes.ts";
import { policyRoutes } from "./policy-routes.ts";
import { resolverRoutes } from "./resolver-routes.ts";

export function routesOf(ports: ControlPorts): Routes {
  const { histories, reader } = ports;
  const nameOf = (containerId: string): string | undefined => ports.containers.facts.get(containerId)?.name;
  return {
    "GET /v1/status": ports.status,
    "POST /v1/probes": ({ body }) => announceProbes(ports, body),
    "POST /v1/repair": async (call) => await repair(ports, call),
    "POST /v1/kind/detach": (call) => setDetached(ports, call, true),
    "POST /v1/kind/attach": (call) => setDetached(ports, call, false),
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
      nameOf,
      composeFilterOf: async (query) => await composeFilterOf(query, ports),
      injected: (isMeant) => ports.leases.injected(isMeant),
    }),
    ...nameRoutes(ports),
    ...containerRoutes(ports),
    ...egressRoutes(ports),
    ...eventRoutes(ports),
    ...resolverRoutes(ports),
    ...leaseRoutes(ports.leases, ports.holderOf),
    ...policyRoutes(ports),
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
  const other = decision.code === "shares-namespace" ? fact.networkMode.slice("container:".length) : "";
  if (containers.facts.has(other)) return other;
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

function setDetached(
  { containers, repairs }: ControlPorts,
  { body }: ApiRequest,
  isDetached: boolean,
): { name: string } {
  const node = typeof body === "object" && body !== null && "node" in body ? body.node : undefined;
  if (typeof node !== "string" || node === "") {
    throw new Fault("NO_NODE", 'Field missing: use {"node": "NAME"}');
  }
  const fact = findContainer(containers.facts.values(), node);
  repairs.setDetached(fact, isDetached);
  return { name: fact.name };
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
