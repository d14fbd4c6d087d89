/**
 * DeferredAnswer: the answer to a query that was forwarded passes the gate when it arrives. What was allowed when it was asked may
 * be refused by now.
 */
import { HEADER_BYTES } from "../../base/dns/header.ts";
import { RCODE } from "../../base/dns/rcode.ts";
import { CLASS, QUESTION_FIXED_BYTES } from "../../base/dns/record.ts";
import type { Share } from "../../base/lib/share.ts";
import type { QueryResult } from "../../base/model/query-record.ts";
import { StoredName } from "../../base/model/label-table.ts";
import type { JudgedQuestion, NamespacePolicy } from "../../policy/judge/namespace-policy.ts";
import type { Refusal } from "../../policy/judge/refusal.ts";
import type { DeferredQuery, Transport } from "../ports.ts";
import { refusedReply } from "../wire/refusal.ts";
import { relayFailure } from "../wire/relay.ts";
import { sizeLimit } from "../wire/reply.ts";
import { type AnswerGate, refusalError } from "./answer-gate.ts";

interface DeferredAnswer {
  readonly deferred: DeferredQuery;
  readonly transport: Transport;
  readonly reply: Uint8Array;
  readonly result: QueryResult;
}

/** What the client is given. */
export interface PassedAnswer {
  readonly reply: Uint8Array;
  readonly result: QueryResult;
  /** Set if a policy refuses it. */
  readonly refusal?: Refusal;
}

/** Room for what is written after a question: an SOA, and an OPT with a text. */
const REST_BYTES = 512;
const NO_RECORDS = { wantsAuthentic: false, isLocalName: false };

/**
 * Calls back once: at once, unless addresses have to be opened. The reply need not outlive this call; one that waits is charged to
 * the container's share.
 */
export function passDeferred(
  gate: AnswerGate,
  { policy, share }: { readonly policy: NamespacePolicy; readonly share: Share },
  answer: DeferredAnswer,
  give: (passed: PassedAnswer) => void,
): void {
  const { deferred, reply } = answer;
  const isPeek = deferred.isOwn === true;
  const refuse = (refusal: Refusal): void => {
    deferred.trace?.recordAnswer("policy", refusal.text);
    give({ reply: refused(answer, refusal), result: "denied", refusal });
  };
  const changed = policy === deferred.policy ? undefined : judgedAgain(policy, deferred);
  if (changed?.isEnforced === true) {
    if (!isPeek) policy.note(changed, questionOf(deferred), deferred.type);
    return refuse(changed);
  }
  const fail = (): void => give({ reply: failedAnswer(answer, RCODE.SERVFAIL), result: "failed" });
  const passage = gate.pass(policy, reply, false, isPeek);
  switch (passage.kind) {
    case "give":
      return give(answer);
    case "refuse":
      return refuse(passage.refusal);
    case "fail":
      return fail();
    case "wait": {
      const bytes = reply.length;
      if (!share.take(bytes)) return fail();
      const kept = { ...answer, reply: Uint8Array.from(reply) };
      return passage.wait((isOpen) => {
        share.give(bytes);
        if (isOpen) give(kept);
        else fail();
      });
    }
  }
}

/** By the policy that is in force now. */
function judgedAgain(policy: NamespacePolicy, deferred: DeferredQuery): Refusal | undefined {
  const { alias } = deferred;
  const question = questionOf(deferred);
  if (alias === undefined) return policy.name(question) ?? policy.forward(question, true);
  const asked = new StoredName(alias.query.subarray(HEADER_BYTES, alias.questionEnd - QUESTION_FIXED_BYTES - 1));
  return policy.name(asked) ?? policy.forward(question, true);
}

function questionOf({ name, type }: DeferredQuery): JudgedQuestion {
  return { ...new StoredName(Buffer.from(name, "latin1")), type, class: CLASS.IN };
}

function refused(answer: DeferredAnswer, refusal: Refusal): Uint8Array {
  const { block, questionEnd, options } = blank(answer);
  return block.subarray(0, refusedReply(block, 0, questionEnd, { ...options, why: refusalError(refusal) }));
}

/** An error in place of an answer, made of the question alone: what follows it may be anything by now. */
export function failedAnswer(answer: Pick<DeferredAnswer, "deferred" | "transport">, rcode: number): Uint8Array {
  const { block, questionEnd, options } = blank(answer);
  return block.subarray(0, relayFailure(block, 0, questionEnd, { ...options, ...NO_RECORDS }, rcode));
}

/** The question that the client sent, with room for a reply. */
function blank({ deferred, transport }: Pick<DeferredAnswer, "deferred" | "transport">): {
  readonly block: Buffer;
  readonly questionEnd: number;
  readonly options: { readonly limit: number; readonly hasOpt: boolean; readonly isDnssecOk: boolean };
} {
  const { alias, hasOpt, isDnssecOk, udpSize } = deferred;
  const { query, questionEnd } = alias ?? deferred;
  const block = Buffer.alloc(questionEnd + REST_BYTES);
  query.copy(block, 0, 0, questionEnd);
  return { block, questionEnd, options: { limit: sizeLimit(udpSize, transport === "tcp"), hasOpt, isDnssecOk } };
}
