/**
 * NameRoutes: `GET /v1/names` with `container` (as that container resolves them), `project` and `service` (only names that
 * their containers have).
 */
import { findContainer } from "../containers/find-container.ts";
import { COMPOSE_KEYS, composeFilterOf } from "../situation/compose-filter.ts";
import type { Routes } from "../server/http.ts";
import { listNames } from "../reports/list-names.ts";
import type { ControlPorts } from "../situation/ports.ts";
import { refuseUnknown } from "../server/parameters.ts";

export function nameRoutes(ports: ControlPorts): Routes {
  return {
    "GET /v1/names": async ({ query }) => {
      refuseUnknown(query, ["container", ...COMPOSE_KEYS]);
      const word = query.get("container") ?? "";
      const fact = word === "" ? undefined : findContainer(ports.containers.facts.values(), word);
      return await listNames(ports, fact, await composeFilterOf(query, ports));
    },
  };
}
