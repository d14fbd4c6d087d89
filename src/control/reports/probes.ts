/**
 * Probes: `POST /v1/probes`, by which the doctor, a process of its own, announces its test queries; and the same for lookups.
 */
import type { ProbesReport, ProbesRequest } from "../../api/probes.ts";
import { Fault } from "../../base/lib/fault.ts";
import { LIMITS } from "../../base/limits.ts";
import { findContainer, namespaceOwner } from "../containers/find-container.ts";
import type { ControlPorts } from "../situation/ports.ts";

const PORT_MAX = 0xffff;
const USE = 'use {"container": "NAME", "udp": [PORT], "tcp": [PORT]}';

/** Announces queries from these source ports; returns how many. A container that is not served records no queries. */
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
