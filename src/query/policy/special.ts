/**
 * SpecialNames: names that are not forwarded unless a domain-specific route matches: the special-use names of RFC 6761
 * and its successors and, if configured, names without a dot and the reverse names of private addresses.
 */
import { wireLabels } from "../../base/dns/name.ts";
import { TYPE } from "../../base/dns/record-type.ts";
import type { Behaviour } from "../../base/model/behaviour.ts";
import type { LocalOnlyPolicy } from "../../base/model/upstream-policy.ts";
import { UNDECIDED } from "../ports.ts";
import type { Question } from "../wire/question.ts";
import { addressAnswer, nameError, noData, pointerAnswer } from "../wire/reply.ts";
import type { Trace } from "../trace.ts";
import { type Suffix, endsWith } from "./route.ts";

const LOCALHOST = suffix("localhost");
const LOOPBACK_V4 = Uint8Array.of(127, 0, 0, 1);
const LOOPBACK_V6 = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1);
const LOOPBACK_REVERSE = [suffix("1.0.0.127.in-addr.arpa"), suffix(`1.${"0.".repeat(31)}ip6.arpa`)];
const LOCALHOST_TARGET = Buffer.concat([LOCALHOST.suffix, Buffer.of(0)]);

/** They never exist: RFC 6761 (invalid), RFC 7686 (onion). */
const NONEXISTENT = ["invalid", "onion"].map(suffix);
/** Discovery of the resolver's own encrypted endpoints: there are none (RFC 9462, 6.4). */
const RESOLVER = suffix("resolver.arpa");

/** RFC 6303: private, link-local and documentation addresses, which public DNS cannot know. */
const PRIVATE_REVERSE = [
  "10.in-addr.arpa",
  ...Array.from({ length: 16 }, (_, i) => `${16 + i}.172.in-addr.arpa`),
  "168.192.in-addr.arpa",
  "254.169.in-addr.arpa",
  "127.in-addr.arpa",
  "0.in-addr.arpa",
  "d.f.ip6.arpa",
  "c.f.ip6.arpa",
  ...["8", "9", "a", "b"].map((nibble) => `${nibble}.e.f.ip6.arpa`),
].map(suffix);

export class SpecialNames {
  readonly #behaviour: Behaviour;
  readonly #policy: LocalOnlyPolicy;
  /** Set while a query is explained. */
  trace: Trace | undefined;

  constructor(behaviour: Behaviour, policy: LocalOnlyPolicy) {
    this.#behaviour = behaviour;
    this.#policy = policy;
  }

  /** Answers in place, over the query; returns the length of the reply, or UNDECIDED if the name may be forwarded. */
  answer(block: Buffer, question: Question, limit: number): number {
    const { type, labelCount } = question;
    if (this.#behaviour.answersSpecialNames) {
      const length = this.#special(block, question, limit);
      if (length !== UNDECIDED) return length;
    }
    const { keepsDotless, keepsPrivateReverse } = this.#policy;
    const isDotless = keepsDotless && labelCount < 2 && (type === TYPE.A || type === TYPE.AAAA);
    const isPrivate = keepsPrivateReverse && PRIVATE_REVERSE.some((zone) => endsWith(question, zone));
    if (!isDotless && !isPrivate) return UNDECIDED;
    const which = isDotless
      ? "forward.domain-needed: no dot"
      : "forward.bogus-priv: the reverse name of a private address";
    this.trace?.recordAnswer("special", `${which}, so it is not forwarded`);
    return nameError(block, question, this.#behaviour);
  }

  #special(block: Buffer, question: Question, limit: number): number {
    const behaviour = this.#behaviour;
    if (endsWith(question, LOCALHOST)) {
      this.trace?.recordAnswer("special", "localhost and names below it resolve to loopback addresses (RFC 6761)");
      return this.#localhost(block, question, limit);
    }
    if (NONEXISTENT.some((zone) => endsWith(question, zone))) {
      this.trace?.recordAnswer("special", "invalid and onion do not exist in DNS (RFC 6761, RFC 7686)");
      return nameError(block, question, behaviour);
    }
    if (endsWith(question, RESOLVER)) {
      this.trace?.recordAnswer("special", "resolver.arpa: the resolver has no encrypted endpoints (RFC 9462)");
      return noData(block, question, behaviour);
    }
    if (question.type === TYPE.PTR && LOOPBACK_REVERSE.some((name) => endsWith(question, name))) {
      this.trace?.recordAnswer("special", "the reverse name of a loopback address is localhost");
      return pointerAnswer(block, question, LOCALHOST_TARGET, behaviour, limit);
    }
    return UNDECIDED;
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

function suffix(name: string): Suffix {
  return { suffix: wireLabels(name) as Uint8Array, labelCount: name.split(".").length };
}
