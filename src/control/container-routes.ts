/**
 * ContainerRoutes: containers, networks, and which containers can resolve which services.
 */
import type { Routes } from "./http.ts";
import { listContainers } from "./list-containers.ts";
import { listNetworks } from "./list-networks.ts";
import { matrix } from "./matrix.ts";
import type { ControlPorts } from "./ports.ts";

export function containerRoutes(ports: ControlPorts): Routes {
  return {
    "GET /v1/containers": async (call) => await listContainers(ports, call),
    "GET /v1/networks": async (call) => await listNetworks(ports, call),
    "GET /v1/matrix": async (call) => await matrix(ports, call),
  };
}
