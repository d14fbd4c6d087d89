/**
 * EgressRoutes: `GET /v1/egress` with `container`, `project` and `service`.
 */
import { type EgressPorts, egressReport } from "../egress/egress-reader.ts";
import { refuseUnknown } from "../server/parameters.ts";
import type { Routes } from "../server/http.ts";
import { COMPOSE_KEYS, composeFilterOf } from "../situation/compose-filter.ts";

export function egressRoutes(ports: EgressPorts): Routes {
  return {
    "GET /v1/egress": async ({ query }) => {
      refuseUnknown(query, ["container", ...COMPOSE_KEYS]);
      const filter = await composeFilterOf(query, ports);
      return await egressReport(ports, {
        container: query.get("container") || undefined,
        acceptsId: filter?.acceptsId,
      });
    },
  };
}
