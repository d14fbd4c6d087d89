/**
 * AnswerGate: every answer to a container with a policy passes here before it is given, wherever it comes from: names of this machine, the
 * cache, a server, a rule of a test. It judges what the answer contains. Addresses that must be opened for the container are opened here,
 * too, and the answer waits until they are.
 */
import { EXTENDED_ERROR, errorOption } from "../../../base/dns/extended-error.ts";
import { u16, u32 } from "../../../base/dns/bytes.ts";
import { HEADER_BYTES, SECTIONS, countAt } from "../../../base/dns/header.ts";
import { QUESTION_FIXED_BYTES, DATA_LENGTH_AT, RECORD_FIXED_BYTES, TTL_AT } from "../../../base/dns/record.ts";
import { unmapped } from "../../../base/model/address.ts";
import type { QuestionName } from "../../../base/model/visible-names.ts";
import { StoredName } from "../../../base/model/label-table.ts";
import type { GivenAnswer, OpenAddresses } from "../judge/given-answer.ts";
import type { NamespacePolicy } from "../judge/namespace-policy.ts";
import type { Refusal } from "../judge/refusal.ts";
import { POINTER, pointerTarget } from "../../../base/dns/name.ts";
import { TYPE } from "../../../base/dns/record-type.ts";
import { resetNameSteps, skipName } from "../../../query/wire/name.ts";
import { POLICY_LIMITS } from "../model/limits.ts";

/** What becomes of an answer. */
type GateDecision =
  | { readonly kind: "give" }
  | { readonly kind: "refuse"; readonly refusal: Refusal }
  /** It cannot be read, or has too much in it, so its contents are unknown. */
  | { readonly kind: "fail" }
  /** It is given when its addresses are open. */
  | { readonly kind: "wait"; readonly wait: (onOpen: (isOpen: boolean) => void) => void };

const GIVE: GateDecision = { kind: "give" };
const FAIL: GateDecision = { kind: "fail" };

interface Openings {
  /** Undefined while only names are filtered. */
  readonly openAddresses: OpenAddresses | undefined;
}

/** Whatever a container is answered passes here before it is given, wherever it comes from. */
export class AnswerGate {
  readonly #openings: Openings;

  constructor(openings: Openings = { openAddresses: undefined }) {
    this.#openings = openings;
  }

  /** Judges an answer; `reply` is the whole message. `isLocal`: the name is of this machine. `isPeek`: no client gets the answer. */
  pass(policy: NamespacePolicy, reply: Uint8Array, isLocal: boolean, isPeek: boolean): GateDecision {
    const addresses = new Map<string, Uint8Array>();
    const targets: QuestionName[] = [];
    let ttlSeconds = 0;
    let count = 0;
    let refusal: Refusal | undefined;
    const isReadable = visitContents(reply, {
      address: (bytes, ttl) => {
        ttlSeconds = Math.max(ttlSeconds, ttl);
        const address = unmapped(bytes);
        refusal = stricter(refusal, policy.address(address, isLocal));
        addresses.set(Buffer.from(address).toString("latin1"), address);
        return ++count <= POLICY_LIMITS.answerAddresses;
      },
      target: (labels) => {
        const target = new StoredName(labels);
        targets.push(target);
        refusal = stricter(refusal, policy.target(target));
        return targets.length <= POLICY_LIMITS.answerAliases;
      },
    });
    if (refusal !== undefined && !isPeek) note(policy, refusal, reply);
    if (refusal?.isEnforced === true) return { kind: "refuse", refusal };
    if (!isReadable && policy.isEnforcing) return FAIL;
    if (isPeek || addresses.size === 0) return GIVE;
    const all = [...addresses.values()].map((each) => Uint8Array.from(each));
    for (const each of all) policy.answered(each);
    return this.#open({ policy, addresses: all, isLocal, names: [questionName(reply), ...targets], ttlSeconds });
  }

  #open(answer: GivenAnswer): GateDecision {
    const { openAddresses } = this.#openings;
    if (openAddresses === undefined) return GIVE;
    let onOpen: ((isOpen: boolean) => void) | undefined;
    let result: boolean | undefined;
    const isOpen = openAddresses(answer, (each) => {
      result = each;
      onOpen?.(each);
    });
    if (isOpen) return GIVE;
    return {
      kind: "wait",
      wait: (act) => {
        if (result === undefined) onOpen = act;
        else act(result);
      },
    };
  }
}

function note(policy: NamespacePolicy, refusal: Refusal, reply: Uint8Array): void {
  policy.note(refusal, questionName(reply), u16(reply, questionEndOf(reply) - QUESTION_FIXED_BYTES));
}

/** The name in the question of a message of ours. */
function questionName(message: Uint8Array): QuestionName {
  const nameEnd = questionEndOf(message) - QUESTION_FIXED_BYTES;
  return new StoredName(Buffer.from(message.subarray(HEADER_BYTES, nameEnd - 1)));
}

/** Where the question of a message of ours ends: its name is not compressed. */
export function questionEndOf(message: Uint8Array): number {
  let at = HEADER_BYTES;
  while (message[at] !== 0) at += 1 + (message[at] as number);
  return at + 1 + QUESTION_FIXED_BYTES;
}

/** The extended error of a refusal. */
export function refusalError({ text }: Refusal): Buffer {
  return errorOption(EXTENDED_ERROR.blocked, text);
}

function stricter(one: Refusal | undefined, other: Refusal | undefined): Refusal | undefined {
  if (one === undefined || (other?.isEnforced === true && !one.isEnforced)) return other;
  return one;
}

const IPV4_HINT = 4;
const IPV6_HINT = 6;
const PRIORITY_BYTES = 2;
const PARAMETER_FIXED_BYTES = 4;

/**
 * What a reply tells a client to go to: addresses, those in hints of services among them, and the targets of
 * aliases. All sections count, because clients use what they find. Both methods return false where there are too many.
 */
export interface ContentsVisitor {
  /** Four or sixteen bytes, valid until it returns, and for how long clients keep them. */
  readonly address: (bytes: Uint8Array, ttlSeconds: number) => boolean;
  /** The labels of the name that an alias leads to, without the terminating zero. */
  readonly target: (labels: Uint8Array) => boolean;
}

/** Whether the whole reply could be read, and had no more than the visitor wanted. */
export function visitContents(reply: Uint8Array, visitor: ContentsVisitor): boolean {
  const end = reply.length;
  resetNameSteps(end);
  const nameEnd = skipName(reply, 0, HEADER_BYTES, end);
  let at = nameEnd + QUESTION_FIXED_BYTES;
  if (nameEnd === -1 || at > end) return false;
  for (let section = 0; section < SECTIONS; section++) {
    // A truncated reply may announce more than it has.
    for (let left = u16(reply, countAt(section)); left > 0 && at < end; left--) {
      const fixed = skipName(reply, 0, at, end);
      const data = fixed + RECORD_FIXED_BYTES;
      if (fixed === -1 || data > end) return false;
      at = data + u16(reply, fixed + DATA_LENGTH_AT);
      if (at > end || !visitRecord(reply, fixed, data, at, visitor)) return false;
    }
  }
  return true;
}

function visitRecord(reply: Uint8Array, fixed: number, data: number, end: number, visitor: ContentsVisitor): boolean {
  const type = u16(reply, fixed);
  switch (type) {
    case TYPE.A:
    case TYPE.AAAA: {
      if (end - data !== (type === TYPE.A ? 4 : 16)) return false;
      return visitor.address(reply.subarray(data, end), u32(reply, fixed + TTL_AT));
    }
    case TYPE.CNAME:
    case TYPE.DNAME: {
      if (skipName(reply, 0, data, end) === -1) return false;
      return visitor.target(labelsAt(reply, data));
    }
    case TYPE.HTTPS:
    case TYPE.SVCB:
      return visitHints(reply, data, end, u32(reply, fixed + TTL_AT), visitor);
    default:
      return true;
  }
}

function visitHints(
  reply: Uint8Array,
  data: number,
  end: number,
  ttlSeconds: number,
  visitor: ContentsVisitor,
): boolean {
  let at = skipName(reply, 0, data + PRIORITY_BYTES, end);
  if (at === -1) return false;
  while (at < end) {
    const value = at + PARAMETER_FIXED_BYTES;
    if (value > end) return false;
    const key = u16(reply, at);
    at = value + u16(reply, at + 2);
    if (at > end) return false;
    const size = key === IPV4_HINT ? 4 : key === IPV6_HINT ? 16 : 0;
    if (size === 0) continue;
    for (let each = value; each + size <= at; each += size)
      if (!visitor.address(reply.subarray(each, each + size), ttlSeconds)) return false;
  }
  return true;
}

/** A name that can be read. */
function labelsAt(reply: Uint8Array, start: number): Uint8Array {
  const labels: Uint8Array[] = [];
  for (let at = start; ;) {
    const size = reply[at] as number;
    if (size === 0) return Buffer.concat(labels);
    if (size >= POINTER) {
      at = pointerTarget(reply, at);
      continue;
    }
    labels.push(reply.subarray(at, at + 1 + size));
    at += 1 + size;
  }
}
