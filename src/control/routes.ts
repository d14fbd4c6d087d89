/**
 * Routes: what can be asked of a running dns11 and what it can be told, by method and path. Paths begin with the version of
 * what they mean; within one, answers gain fields and lose none.
 */
import { setTimeout as sleep } from "node:timers/promises";

import { LIMITS } from "../config/limits.ts";
import { Fault } from "../lib/fault.ts";
import type { Composition } from "../run/compose.ts";
import type { Call, Routes } from "./control.ts";
import { findContainer } from "./find-container.ts";
import type { CountersReport } from "../api/query-report.ts";
import { findGone, queryRoutes } from "./query-routes.ts";
import { questionRoutes } from "./question-routes.ts";
import type { RepairAnswer, Status } from "./status.ts";
import type { ReloadReport } from "../api/told.ts";

const LOOK_EVERY_MS = 10;

interface RouteParts {
  readonly composition: Composition;
  readonly status: () => Status;
  /** Those for machines that watch machines. */
  readonly pages: Routes;
  readonly reload: () => Promise<ReloadReport>;
}

export function routesOf({ composition, status, reload, pages }: RouteParts): Routes {
  return {
    ...pages,
    "GET /v1/status": status,
    "POST /v1/repair": async (call) => await repair(composition, call),
    "POST /v1/kind/detach": (call) => setDetached(composition, call, true),
    "POST /v1/kind/attach": (call) => setDetached(composition, call, false),
    ...queryRoutes({
      book: composition.book,
      reader: composition.reader,
      find: (wanted) => findAsker(composition, wanted),
      counters: () => countersOf(composition),
    }),
    ...questionRoutes({ composition, reload }),
  };
}

/** A container whose queries come to us, or did. */
function findAsker({ roster, directory, book }: Composition, wanted: string): string {
  let fact;
  try {
    fact = findContainer(directory.containers.values(), wanted);
  } catch (error) {
    const gone = findGone(book, wanted);
    if (gone === undefined) throw error;
    return gone;
  }
  for (const [{ id, networkMode }, decision] of roster.decisions()) {
    if (id === fact.id && decision.kind === "leave") {
      // It asks from the namespace of another.
      const other = decision.code === "shares-namespace" ? networkMode.slice("container:".length) : "";
      if (directory.containers.has(other)) return other;
      throw new Fault("NOT_SERVED", `What "${fact.name}" asks does not come to dns11: ${decision.reason}`);
    }
  }
  return fact.id;
}

function countersOf({ directory, reconciler }: Composition): CountersReport {
  const all = [...reconciler.attachments()].map(([id, { counters }]) => ({
    container: directory.containers.get(id)?.name ?? id,
    counters: counters ?? {},
  }));
  return { containers: all };
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

/** Has a container's namespace attached anew where it has to be, and tells what came of it. */
async function repair(composition: Composition, { body }: Call): Promise<RepairAnswer> {
  const { directory, reconciler } = composition;
  const wanted = typeof body === "object" && body !== null && "container" in body ? body.container : undefined;
  if (typeof wanted !== "string" || wanted === "") {
    throw new Fault("NO_CONTAINER", 'Which container? It is told as {"container": "NAME"}');
  }
  const { id, name } = findContainer(directory.containers.values(), wanted);
  if (composition.parts.quarantines.release(id)) return { name, outcome: await attachReleased(composition, id) };
  return { name, outcome: (await reconciler.repair(id)) ?? "not-served" };
}

/** It is wanted again from now on, and attached by the worker in its turn. */
async function attachReleased({ roster, reconciler }: Composition, id: string): Promise<RepairAnswer["outcome"]> {
  roster.refresh();
  for (const endMs = performance.now() + LIMITS.repairMs; performance.now() < endMs; await sleep(LOOK_EVERY_MS)) {
    const outcome = await reconciler.repair(id);
    if (outcome !== undefined) return outcome === "failed" ? "failed" : "released";
  }
  return "failed";
}
