/**
 * Routes: what can be asked of a running dns11 and what it can be told, by method and path. Paths begin with the version of
 * what they mean; within one, answers gain fields and lose none.
 */
import { Fault } from "../lib/fault.ts";
import type { Composition } from "./compose.ts";
import type { Call, Routes } from "./control.ts";
import { findContainer } from "./find-container.ts";
import { questionRoutes } from "./question-routes.ts";
import type { Status } from "./status.ts";
import type { ReloadReport } from "./told.ts";

interface RouteParts {
  readonly composition: Composition;
  readonly status: () => Status;
  readonly reload: () => Promise<ReloadReport>;
}

export function routesOf({ composition, status, reload }: RouteParts): Routes {
  return {
    "GET /v1/status": status,
    "POST /v1/kind/detach": (call) => setDetached(composition, call, true),
    "POST /v1/kind/attach": (call) => setDetached(composition, call, false),
    ...questionRoutes({ composition, reload }),
  };
}

function setDetached({ roster, nodes, directory }: Composition, { body }: Call, isDetached: boolean): { name: string } {
  const node = typeof body === "object" && body !== null && "node" in body ? body.node : undefined;
  if (typeof node !== "string" || node === "") {
    throw new Fault("NO_NODE", 'Which node? It is told as {"node": "NAME"}');
  }
  const fact = findContainer(directory.containers.values(), node);
  if (!nodes.isNode(fact)) throw new Fault("NO_SUCH_NODE", `"${fact.name}" is no KIND node to this dns11`);
  roster.setDetached(fact, isDetached);
  return { name: fact.name };
}
