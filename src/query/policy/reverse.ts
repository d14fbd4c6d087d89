/**
 * Which container an address belongs to: names below in-addr.arpa and ip6.arpa, looked up on the networks of the asker
 * and nowhere else. Gateways, hosts and strangers are not ours to name.
 */
import { sameBytes, wireLabels } from "../../dns/name.ts";
import type { Behaviour } from "../../model/behaviour.ts";
import type { Pointer } from "../../model/network-names.ts";
import type { View } from "../../model/view.ts";
import type { Question } from "../wire/question.ts";

const TREES = [
  { suffix: wireLabels("in-addr.arpa") as Uint8Array, labels: 4 },
  { suffix: wireLabels("ip6.arpa") as Uint8Array, labels: 32 },
];
const SUFFIX_LABELS = 2;

export class ReverseNames {
  readonly #behaviour: Behaviour;

  constructor(behaviour: Behaviour) {
    this.#behaviour = behaviour;
  }

  find(question: Question, view: View): Pointer | undefined {
    if (question.hasUpperCase && !this.#behaviour.foldsCase) return undefined;
    const labels = question.labelCount - SUFFIX_LABELS;
    if (labels < 1 || !this.#isReverse(question, labels)) return undefined;
    const length = question.lengthOf[labels] as number;
    const hash = question.hashOf[labels] as number;
    for (const network of view.networks) {
      const pointer = network.names.pointer(question.folded, length, hash);
      if (pointer !== undefined && (!pointer.onlyBetter || this.#behaviour.reversesAllIpv6)) return pointer;
    }
    return undefined;
  }

  /** Docker looks only at the suffix, so that an IPv4 address is found below ip6.arpa too. */
  #isReverse(question: Question, labels: number): boolean {
    const start = question.lengthOf[labels] as number;
    const length = question.foldedLength - start;
    return TREES.some(
      ({ suffix, labels: expected }) =>
        (expected === labels || !this.#behaviour.reversesAllIpv6) &&
        suffix.length === length &&
        sameBytes(question.folded, start, suffix, 0, length),
    );
  }
}
