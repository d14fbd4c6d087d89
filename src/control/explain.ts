/**
 * Explain: one question taken the way that a container's own queries take, by whoever answers those, with everything told
 * that is decided on it. It counts as a query of the container, and what servers say is kept as ever.
 */
import { randomInt } from "node:crypto";

import type { Attachment } from "../container/attach/attachment.ts";
import type { ContainerFact } from "../container/registry/fact.ts";
import { Fault } from "../lib/fault.ts";
import { questionQuery } from "../model/question-text.ts";
import { replyText } from "../model/reply-text.ts";
import { DROPPED, SLOT_BYTES } from "../query/ports.ts";
import type { Asker } from "../query/asker/asker.ts";
import { Endpoint } from "../query/listen/endpoint.ts";
import { Trace } from "../query/trace.ts";
import type { Composition } from "../run/compose.ts";
import { findContainer, namespaceOwner } from "./find-container.ts";
import { type StoppedContainer, hintsFor } from "./hints.ts";
import { containerRef, readQuestion, resolvConfOf } from "./lookup.ts";
import type { ExplainedStep, Explanation, NameOrder } from "../api/told.ts";

export async function explain(composition: Composition, order: NameOrder): Promise<Explanation> {
  const { directory, roster, queryWay } = composition;
  const question = readQuestion(order.name, order.type);
  const fact = findContainer(directory.containers.values(), order.container);
  const owner = namespaceOwner(directory.containers, fact);
  const asker = askerOf(composition, owner);
  const trace = new Trace();
  const began = performance.now();
  const { answerer, forward } = queryWay.asking();
  const message = await answered(asker, questionQuery(question, randomInt(0x10000)), { answerer, forward, trace });
  const ms = performance.now() - began;
  const reply = message === undefined ? undefined : replyText(message);
  const steps = trace.steps.map((step): ExplainedStep => {
    const { events } = step;
    return events === undefined ? step : { ...step, events: events.map((e) => ({ ...e, atMs: e.atMs - began })) };
  });
  const { names } = roster.viewOf(owner);
  return {
    container: containerRef(fact, owner),
    question: { name: question.name, type: question.typeName },
    networks: names.flatMap(({ places }) => places),
    steps,
    answeredBy: steps.findLast(({ isAnswer }) => isAnswer)?.layer ?? null,
    server: trace.server ?? null,
    ms,
    reply: reply ?? null,
    hints: hintsFor({
      fact,
      owner,
      question,
      reply,
      containers: [...directory.containers.values()],
      stopped: await stoppedContainers(composition),
      resolvConf: resolvConfOf(composition, fact) ?? resolvConfOf(composition, owner),
    }),
  };
}

/** Who asks from in there; where we do not serve it, nobody's answer could be explained. */
function askerOf(composition: Composition, owner: ContainerFact): Asker {
  const { reconciler, roster } = composition;
  const attachment = new Map(reconciler.attachments()).get(owner.id);
  const endpoint = attachment?.endpoint;
  if (endpoint instanceof Endpoint && attachment?.state.kind !== "failed") return endpoint.asker;
  throw new Fault("NOT_SERVED", `"${owner.name}" is not served by dns11: ${whyNot(roster, owner, attachment)}`, {
    remedy: `dns11 lookup NAME --in ${owner.name} asks whoever answers there.`,
  });
}

function whyNot(roster: Composition["roster"], owner: ContainerFact, attachment: Attachment | undefined): string {
  const decision = [...roster.decisions()].find(([{ id }]) => id === owner.id)?.[1];
  if (decision?.kind === "leave") return decision.reason;
  return attachment?.state.kind === "failed" ? attachment.state.reason : "it is about to be; try again";
}

type Way = Pick<ReturnType<Composition["queryWay"]["asking"]>, "answerer" | "forward"> & { readonly trace: Trace };

/** The reply as it would be sent to a client that asks by UDP; undefined where it would get none. */
async function answered(asker: Asker, query: Buffer, { answerer, forward, trace }: Way): Promise<Buffer | undefined> {
  const block = Buffer.alloc(SLOT_BYTES);
  query.copy(block);
  const result = answerer.explain(asker, block, query.length, false, trace);
  if (typeof result === "number") return result === DROPPED ? undefined : block.subarray(0, result);
  return await new Promise((resolve) => forward(asker, result, "udp", (reply) => resolve(Buffer.from(reply))));
}

/** Where the engine is away nobody knows of them. */
async function stoppedContainers({ parts, directory }: Composition): Promise<readonly StoppedContainer[]> {
  try {
    const all = await parts.engine.allContainers();
    return (
      all
        // One that runs and is not known yet will be, in a moment.
        .filter(
          ({ Id: id, State: state }) => !directory.containers.has(id) && state !== "running" && state !== "paused",
        )
        .map(({ Names: names, State: state, NetworkSettings: settings }) => ({
          name: names?.[0]?.replace(/^\//, "") ?? "",
          state: state ?? "",
          networks: Object.keys(settings?.Networks ?? {}),
        }))
    );
  } catch {
    return [];
  }
}
