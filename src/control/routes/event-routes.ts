/**
 * EventRoutes: `GET /v1/events` with `last` (how many), `since` (a number), and `follow=true` (each event as it happens), and
 * `GET /v1/history`.
 */
import { LIMITS } from "../../base/limits.ts";
import { Fault } from "../../base/lib/fault.ts";
import type { Routes } from "../server/http.ts";
import type { ControlPorts } from "../situation/ports.ts";
import { isTrue, numberOf, refuseUnknown } from "../server/parameters.ts";

/** The default of `last`. */
const DEFAULT_LAST = 100;

export function eventRoutes(ports: ControlPorts): Routes {
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
