import { HEADER_BYTES } from "../../../base/dns/header.ts";
import { RCODE } from "../../../base/dns/rcode.ts";
import { CLASS, QUESTION_FIXED_BYTES } from "../../../base/dns/record.ts";
import type { Share } from "../../../base/lib/share.ts";
import { StoredName } from "../../../base/model/label-table.ts";
import type { JudgedQuestion, NamespacePolicy } from "../judge/namespace-policy.ts";
import type { Refusal } from "../judge/refusal.ts";
import { failedAnswer, questionAlone } from "../../../query/forward/failed-reply.ts";
import type { AskedQuery, ForwardedAnswer, PassedAnswer } from "../../../query/query-policy.ts";
import { type AnswerGate, refusalError } from "./answer-gate.ts";
import { refusedReply } from "./refused-reply.ts";

interface Judging {
  readonly policy: NamespacePolicy;
  readonly gate: AnswerGate;
  readonly share: Share;
  /** Another policy has judged the question. */
  readonly isChanged: boolean;
}

/** The answer to a query that was forwarded passes when it arrives: what was allowed when it was asked may be refused by now. */
export function passForwarded(
  { policy, gate, share, isChanged }: Judging,
  answer: ForwardedAnswer,
  give: (passed: PassedAnswer) => void,
): void {
  const { deferred, reply } = answer;
  const isPeek = deferred.isOwn === true;
  const refuse = (refusal: Refusal): void => {
    deferred.trace?.recordAnswer("policy", refusal.text);
    give({ reply: refused(answer, refusal), result: "denied", refusal });
  };
  const changed = isChanged ? judgedAgain(policy, deferred) : undefined;
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
function judgedAgain(policy: NamespacePolicy, deferred: AskedQuery): Refusal | undefined {
  const { alias } = deferred;
  const question = questionOf(deferred);
  if (alias === undefined) return policy.name(question) ?? policy.forward(question, true);
  const asked = new StoredName(alias.query.subarray(HEADER_BYTES, alias.questionEnd - QUESTION_FIXED_BYTES - 1));
  return policy.name(asked) ?? policy.forward(question, true);
}

function questionOf({ name, type }: AskedQuery): JudgedQuestion {
  return { ...new StoredName(Buffer.from(name, "latin1")), type, class: CLASS.IN };
}

function refused(answer: ForwardedAnswer, refusal: Refusal): Uint8Array {
  const { block, questionEnd, options } = questionAlone(answer);
  return block.subarray(0, refusedReply(block, 0, questionEnd, { ...options, why: refusalError(refusal) }));
}
