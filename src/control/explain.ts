/**
 * Explain: resolves one question exactly as the container's own queries, and records every decision. Replies are cached as
 * usual, but it counts nowhere as a query of the container.
 */
import { randomInt } from "node:crypto";

import type { Attachment } from "../container/attach/attachment.ts";
import type { ContainerFact } from "../container/registry/fact.ts";
import { Fault } from "../base/lib/fault.ts";
import { questionQuery } from "../base/model/question-text.ts";
import { replyText } from "../base/model/reply-text.ts";
import { DROPPED, SLOT_BYTES } from "../query/ports.ts";
import type { Client } from "../query/client/client.ts";
import { Endpoint } from "../query/listen/endpoint.ts";
import { Trace } from "../query/trace.ts";
import type { Decision } from "../container/attach/decision.ts";
import type { ActiveResolver, ControlPorts } from "./ports.ts";
import { findContainer, namespaceOwner } from "./find-container.ts";
import { containerRef, readQuestion } from "./lookup.ts";
import { causesOf } from "./causes/causes.ts";
import { causeText } from "./causes/fixes.ts";
import { Situations } from "./situations.ts";
import type { ExplainedStep, Explanation, NameRequest } from "../api/names.ts";

export async function explain(ports: ControlPorts, nameRequest: NameRequest): Promise<Explanation> {
  const { containers } = ports;
  const question = readQuestion(nameRequest.name, nameRequest.type);
  const fact = findContainer(containers.facts.values(), nameRequest.container);
  const owner = namespaceOwner(containers.facts, fact);
  const client = clientOf(ports, owner);
  const trace = new Trace();
  const began = performance.now();
  const { answerer, forward } = ports.resolver();
  const message = await resolveQuery(client, questionQuery(question, randomInt(0x10000)), { answerer, forward, trace });
  const ms = performance.now() - began;
  const reply = message === undefined ? undefined : replyText(message);
  const steps = trace.steps.map((step): ExplainedStep => {
    const { events } = step;
    return events === undefined ? step : { ...step, events: events.map((e) => ({ ...e, atMs: e.atMs - began })) };
  });
  const { names } = containers.viewOf(owner);
  const answeredBy = steps.findLast(({ isAnswer }) => isAnswer)?.layer ?? null;
  const isAnswered = reply !== undefined && reply.answers.length > 0;
  const causes = causesOf(
    (await Situations.open(ports)).of(fact, owner, {
      name: question.name,
      typeName: question.typeName,
      failure: isAnswered ? undefined : failureOf(reply?.rcode),
      isFromUpstream: answeredBy === "servers" || answeredBy === "cache",
      isTruncated: reply?.isTruncated === true,
      isSpecial: answeredBy === "special",
    }),
  );
  return {
    container: containerRef(fact, owner),
    question: { name: question.name, type: question.typeName },
    networks: names.flatMap(({ places }) => places),
    steps,
    answeredBy,
    server: trace.server ?? null,
    ms,
    reply: reply ?? null,
    causes,
    hints: causes.map((each) => causeText(each)),
  };
}

/** An empty answer is a failure, too: a program gets no address. */
function failureOf(rcode: string | undefined): string {
  return rcode === undefined ? "no reply" : rcode === "NOERROR" ? "NODATA" : rcode;
}

/** The client of the container's namespace. A container that is not served has no answer to explain. */
function clientOf({ containers }: ControlPorts, owner: ContainerFact): Client {
  const attachment = containers.attachmentOf(owner.id);
  const endpoint = attachment?.endpoint;
  if (endpoint instanceof Endpoint && attachment?.state.kind !== "failed") return endpoint.client;
  const reason = reasonNotServed(containers.decisionOf(owner.id), attachment);
  throw new Fault("NOT_SERVED", `dns11 does not serve "${owner.name}": ${reason}`, {
    remedy: `To query the server that it uses instead: dns11 lookup NAME --in ${owner.name}`,
  });
}

function reasonNotServed(decision: Decision | undefined, attachment: Attachment | undefined): string {
  if (decision?.kind === "skip") return decision.reason;
  return attachment?.state.kind === "failed" ? attachment.state.reason : "it is being attached; try again";
}

type ExplainContext = Pick<ActiveResolver, "answerer" | "forward"> & { readonly trace: Trace };

/** The reply that a client would get over UDP; undefined if it would get none. */
async function resolveQuery(
  client: Client,
  query: Buffer,
  { answerer, forward, trace }: ExplainContext,
): Promise<Buffer | undefined> {
  const block = Buffer.alloc(SLOT_BYTES);
  query.copy(block);
  const result = answerer.explain(client, block, query.length, false, trace);
  if (typeof result === "number") return result === DROPPED ? undefined : block.subarray(0, result);
  return await new Promise((resolve) => forward(client, result, "udp", (reply) => resolve(Buffer.from(reply))));
}
