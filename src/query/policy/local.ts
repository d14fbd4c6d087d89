/**
 * Which name of which network a question means. A name is tried whole on every network, then with its tail taken as a
 * network's name, from the right. At each step links come before names, networks in the view's order, and the first hit
 * ends the search: answers of several networks are never merged.
 */
import { HEADER_BYTES } from "../../dns/header.ts";
import { sameBytes } from "../../dns/name.ts";
import type { Behaviour } from "../../model/behaviour.ts";
import type { Named } from "../../model/network-names.ts";
import type { Link, View, ViewNetwork } from "../../model/view.ts";
import type { Trace } from "../trace.ts";
import type { Question } from "../wire/question.ts";

export class LocalNames {
  readonly #behaviour: Behaviour;
  /** Whether the last hit needed a network's name: such a name exists nowhere else in the world. */
  wasQualified = false;
  /** Told of the search while somebody has it explained. */
  trace: Trace | undefined;

  constructor(behaviour: Behaviour) {
    this.#behaviour = behaviour;
  }

  find(block: Buffer, question: Question, view: View): Named | undefined {
    const { networks } = view;
    this.wasQualified = false;
    const whole = this.#search(block, question, networks, question.labelCount, false);
    if (whole !== undefined || question.labelCount < 2) return whole;
    this.wasQualified = true;
    for (let labels = question.labelCount - 1; labels > 0; labels--) {
      const hit = this.#search(block, question, networks, labels, true);
      if (hit !== undefined) return hit;
    }
    return undefined;
  }

  /** One candidate: the first `labels` labels, on every network or on those whose name is the rest. */
  #search(
    block: Buffer,
    question: Question,
    networks: readonly ViewNetwork[],
    labels: number,
    isQualified: boolean,
  ): Named | undefined {
    const length = question.lengthOf[labels] as number;
    this.trace?.begins(question.folded, length, question.foldedLength);
    for (const network of networks) {
      if (network.links.length === 0) continue;
      if (isQualified && !this.#isSuffix(block, question, length, network)) continue;
      const link = this.#link(block, question, length, network);
      if (link?.target === undefined) continue;
      const hit = network.names.named(link.target, link.target.length, link.targetHash);
      this.trace?.followsLink(network.name, link.target, hit !== undefined);
      if (hit !== undefined) return hit;
    }
    const hash = question.hashOf[labels] as number;
    for (const network of networks) {
      if (isQualified && !this.#isSuffix(block, question, length, network)) continue;
      const hit = network.names.named(question.folded, length, hash);
      if (hit === undefined) {
        this.trace?.looksUp(network.name, false);
        continue;
      }
      // A link of this name led nowhere above. Docker then hides the container that really bears the name.
      if (!this.#behaviour.skipsDanglingLinks && this.#link(block, question, length, network) !== undefined) {
        this.trace?.isHidden(network.name);
        continue;
      }
      this.trace?.looksUp(network.name, true);
      return hit;
    }
    return undefined;
  }

  #isSuffix(block: Buffer, question: Question, length: number, network: ViewNetwork): boolean {
    const suffix = this.#behaviour.foldsCase ? network.suffixFolded : network.suffix;
    if (suffix?.length !== question.foldedLength - length) return false;
    return this.#behaviour.foldsCase
      ? sameBytes(question.folded, length, suffix, 0, suffix.length)
      : sameBytes(block, question.offset + HEADER_BYTES + length, suffix, 0, suffix.length);
  }

  #link(block: Buffer, question: Question, length: number, network: ViewNetwork): Link | undefined {
    for (const link of network.links) {
      const alias = this.#behaviour.foldsCase ? link.aliasFolded : link.alias;
      if (alias?.length !== length) continue;
      const isSame = this.#behaviour.foldsCase
        ? sameBytes(question.folded, 0, alias, 0, length)
        : sameBytes(block, question.offset + HEADER_BYTES, alias, 0, length);
      if (isSame) return link;
    }
    return undefined;
  }
}
