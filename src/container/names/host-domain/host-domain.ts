/**
 * HostDomain: the domain of container names on the host: which names a container has below it, and which of them a
 * question can mean. Programs on the host and in containers share this, so that one URL works in both places.
 */
import { COMPOSE_LABEL } from "../../../base/model/compose.ts";
import { isOneOff } from "../../facts/compose.ts";
import { domainLabels } from "../../../base/model/server-text.ts";
import { sameBytes } from "../../../base/dns/name.ts";
import type { QuestionName } from "../../../base/model/visible-names.ts";
import type { ContainerFact, EndpointFact } from "../../facts/fact.ts";

export class HostDomain {
  readonly text: string;
  readonly #suffix: Uint8Array;
  readonly #suffixLabels: number;
  /** The labels of the longest name ever put, so that a question of 127 labels costs no more lookups than it can need. */
  #labelsMax = 1;

  constructor(text: string) {
    this.text = text;
    this.#suffix = domainLabels(text);
    this.#suffixLabels = text.split(".").length;
  }

  /** The names of a container on one network. */
  namesOf(fact: ContainerFact, endpoint: EndpointFact): readonly string[] {
    const names = namesOn(fact, endpoint);
    for (const name of names) this.#labelsMax = Math.max(this.#labelsMax, name.split(".").length);
    return names;
  }

  /** How many labels a name has before the domain; undefined if it is not below it. */
  labelsBefore({ folded, foldedLength, labelCount, lengthOf }: QuestionName): number | undefined {
    const before = labelCount - this.#suffixLabels;
    if (before < 0) return undefined;
    const start = lengthOf[before] as number;
    const length = this.#suffix.length;
    const isBelow = foldedLength - start === length && sameBytes(folded, start, this.#suffix, 0, length);
    return isBelow ? before : undefined;
  }

  /**
   * The labels of the names that a question may mean, the longest first: "api.web" may be a container's name on the
   * network "web", or a name below the container "web".
   */
  *candidates(name: QuestionName, before: number): Generator<Uint8Array> {
    const end = name.lengthOf[before] as number;
    for (let first = Math.max(0, before - this.#labelsMax); first < before; first++)
      yield name.folded.slice(name.lengthOf[first], end);
  }
}

/** The container's own name first: PTR records point to it. Images cannot set the labels of Compose. */
function namesOn({ name, labels }: ContainerFact, { names, networkName }: EndpointFact): string[] {
  const plain = [...new Set([name, ...names])];
  const [service, project, number] = [COMPOSE_LABEL.service, COMPOSE_LABEL.project, COMPOSE_LABEL.number].map(
    (key) => labels[key],
  );
  const composed = service === undefined || project === undefined || isOneOff(labels) ? [] : [`${service}.${project}`];
  const numbered = number === undefined ? [] : composed.map((each) => `${number}.${each}`);
  return [...plain, ...plain.map((each) => `${each}.${networkName}`), ...composed, ...numbered];
}
