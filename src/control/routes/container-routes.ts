/**
 * ContainerRoutes: containers, networks, and which containers can resolve which services.
 */
import type { Routes } from "../server/http.ts";
import { listContainers } from "../reports/list-containers.ts";
import { listNetworks } from "../reports/list-networks.ts";
import { matrix } from "../reports/matrix.ts";
import type { ControlPorts } from "../situation/ports.ts";

export function containerRoutes(ports: ControlPorts): Routes {
  return {
    "GET /v1/containers": async (call) => await listContainers(ports, call),
    "GET /v1/networks": async (call) => await listNetworks(ports, call),
    "GET /v1/matrix": async (call) => await matrix(ports, call),
  };
}
