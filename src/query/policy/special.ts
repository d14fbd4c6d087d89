/**
 * SpecialNames: the answers to names that are not forwarded, each by the rule that keeps it.
 */
import { wireLabels } from "../../base/dns/name.ts";
import { RCODE } from "../../base/dns/rcode.ts";
import { TYPE } from "../../base/dns/record-type.ts";
import type { Behaviour } from "../../base/model/behaviour.ts";
import type { Question } from "../wire/question.ts";
import { addressAnswer, failure, nameError, noData, pointerAnswer } from "../wire/reply.ts";
import type { Trace } from "../trace.ts";
import type { ForwardingRule } from "./forwarding-rules.ts";

const LOOPBACK_V4 = Uint8Array.of(127, 0, 0, 1);
const LOOPBACK_V6 = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1);
const LOCALHOST_TARGET = Buffer.concat([wireLabels("localhost") as Uint8Array, Buffer.of(0)]);

/** The rules for explain; of a local domain its route says all. */
const WHY: Readonly<Record<Exclude<ForwardingRule, "local">, string>> = {
  refused: "nothing is forwarded for whoever asks here: forward is off for this entry of listen",
  ndots: "ndots is set, so address queries for names without a dot are not forwarded",
  localhost: "localhost and names below it resolve to loopback addresses (RFC 6761)",
  nonexistent: "invalid and onion do not exist in DNS (RFC 6761, RFC 7686)",
  resolver: "resolver.arpa: the resolver has no encrypted endpoints (RFC 9462)",
  "loopback-reverse": "the reverse name of a loopback address is localhost",
  "no-dot": "forward.domain-needed: no dot, so it is not forwarded",
  "private-reverse": "forward.bogus-priv: the reverse name of a private address, so it is not forwarded",
};

export class SpecialNames {
  readonly #behaviour: Behaviour;
  /** It is set while a query is explained. */
  trace: Trace | undefined;

  constructor(behaviour: Behaviour) {
    this.#behaviour = behaviour;
  }

  /** Answers in place, over the query; returns the length of the reply. */
  answer(block: Buffer, question: Question, rule: ForwardingRule, limit: number): number {
    const behaviour = this.#behaviour;
    if (rule !== "local") this.trace?.recordAnswer("special", WHY[rule]);
    switch (rule) {
      case "localhost":
        return this.#localhost(block, question, limit);
      case "loopback-reverse":
        return pointerAnswer(block, question, LOCALHOST_TARGET, behaviour, limit);
      case "ndots":
      case "resolver":
        return noData(block, question, behaviour);
      case "refused":
        return failure(block, question, RCODE.REFUSED, behaviour);
      case "local":
      case "nonexistent":
      case "no-dot":
      case "private-reverse":
        return nameError(block, question, behaviour);
    }
  }

  #localhost(block: Buffer, question: Question, limit: number): number {
    const behaviour = this.#behaviour;
    const options = { limit, ttlSeconds: behaviour.ttlSeconds, isSorted: true, shuffle: inOrder, behaviour };
    if (question.type === TYPE.A) return addressAnswer(block, question, LOOPBACK_V4, 4, options);
    if (question.type === TYPE.AAAA) return addressAnswer(block, question, LOOPBACK_V6, 16, options);
    return noData(block, question, behaviour);
  }
}

function inOrder(count: number): Uint16Array {
  return Uint16Array.from({ length: count }, (_, i) => i);
}
