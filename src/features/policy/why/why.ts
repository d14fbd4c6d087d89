/**
 * What a program in a container can learn of its policy without knowing dns11: TXT of NAME.why.dns11.alt says whether NAME is refused,
 * by which rule, and what to ask for. Nobody else has such names: `.alt` is reserved for what is no DNS name (RFC 9476).
 */
import { presentation, wireLabels } from "../../../base/dns/name.ts";
import { CLASS } from "../../../base/dns/record.ts";
import { TYPE } from "../../../base/dns/record-type.ts";
import { RateLimit } from "../../../base/lib/rate-limit.ts";
import { DEFAULT_BEHAVIOUR } from "../../../base/model/behaviour.ts";
import { LOCAL_SOURCE, type LocalSource } from "../../../base/model/local-source.ts";
import { StoredName } from "../../../base/model/label-table.ts";
import {
  RECORDS,
  FOUND,
  MISS,
  type NameRecords,
  NameSearch,
  type QuestionName,
  type VisibleNames,
} from "../../../base/model/visible-names.ts";
import type { PolicyBook } from "../book/policy-book.ts";
import type { NamespacePolicy } from "../judge/namespace-policy.ts";
import { POLICY_LABEL } from "../model/policy.ts";
import type { Refusal } from "../judge/refusal.ts";
import type { EngineCore, Running } from "../../contract.ts";
import { policiesOf } from "../feature.ts";

const SUFFIX = wireLabels("why.dns11.alt") as Uint8Array;
const SUFFIX_LABELS = 3;
const STRING_BYTES_MAX = 255;
/** To know who has a name here, everything that the container sees is looked up. */
const RATE = { burst: 50, perSecond: 20 };

/** Where a container finds a name: which source of this machine has it, if any. */
type SourceOf = (name: QuestionName) => LocalSource | undefined;

export function openWhy(
  book: Pick<PolicyBook, "policies" | "policyOf">,
  engine: () => EngineCore | undefined,
): Pick<Running, "makeNames"> {
  return {
    makeNames: (settings) => ({
      place: "first",
      source: {
        namesFor: (container) => {
          const { labels, imageLabels } = container;
          const isChosen = POLICY_LABEL in labels || POLICY_LABEL in imageLabels.labels;
          // The book still has those of the settings before, while these are made ready.
          if (policiesOf(settings).length === 0 && book.policies.length === 0 && !isChosen) return undefined;
          const search = new NameSearch(DEFAULT_BEHAVIOUR);
          const sourceOf: SourceOf = (name) => {
            const names = engine()?.roster().viewOf(container).names ?? [];
            for (const source of names) {
              const found = source.find(name, search);
              if (found !== MISS) return found === FOUND || found === RECORDS ? source.kind : undefined;
            }
            return undefined;
          };
          return new Reasons(() => book.policyOf(container.id), sourceOf);
        },
      },
    }),
  };
}

export class Reasons implements VisibleNames {
  readonly places: readonly string[] = [];
  readonly kind = LOCAL_SOURCE.rule;
  readonly #policy: () => NamespacePolicy | undefined;
  readonly #sourceOf: SourceOf;
  readonly #limit: RateLimit;

  constructor(policy: () => NamespacePolicy | undefined, sourceOf: SourceOf, now = () => performance.now()) {
    this.#policy = policy;
    this.#sourceOf = sourceOf;
    this.#limit = new RateLimit(RATE, now);
  }

  find(name: QuestionName, search: NameSearch): number {
    const length = lengthBefore(name);
    if (length === undefined) return MISS;
    search.trace?.record("names", "a question about the policy of the container");
    return search.withRecords(this.#recordsOf(new StoredName(name.folded.slice(0, length))), true);
  }

  pointer(): undefined {
    return undefined;
  }

  #recordsOf(asked: StoredName): NameRecords {
    const records = { ttlSeconds: 0, alias: undefined, containers: [] };
    // A question about a question would be looked up again and again.
    if (lengthBefore(asked) !== undefined) return { ...records, sets: new Map() };
    if (!this.#limit.take()) return { ...records, sets: new Map(), isUnavailable: true };
    return { ...records, sets: new Map([[TYPE.TXT, this.#texts(asked).map(textData)]]) };
  }

  #texts(asked: StoredName): string[] {
    const policy = this.#policy();
    if (policy === undefined) return ["no policy: nothing is refused here"];
    if (asked.labelCount === 0) return ["ask for TXT of NAME.why.dns11.alt to learn what becomes of NAME here"];
    const grant = policy.grantFor(asked);
    if (grant !== undefined) return [`allowed: ${grant.text}`];
    const source = this.#sourceOf(asked);
    const question = Object.assign(asked, { type: TYPE.A, class: CLASS.IN });
    const refusal =
      policy.name(asked) ??
      (source === undefined
        ? (policy.forward(question, true) ?? policy.leave(asked, true))
        : policy.local(asked, source));
    if (refusal !== undefined) return refusedTexts(refusal, presentation(asked.folded, 0, asked.foldedLength));
    const rule = policy.ruleFor(question);
    const [first] = policy.policies;
    if (rule === undefined || first === undefined) return ["allowed: it is a name of this machine"];
    return [`allowed: policy ${first.name}: allow ${rule.text} (${first.file}:${rule.line})`];
  }
}

function refusedTexts({ text, isEnforced, reason, policy }: Refusal, name: string): string[] {
  if (!isEnforced) return [`allowed, and recorded: ${text}`];
  const more =
    reason === "not-allowed" ? [`to have it allowed, ask for "${name}" in "allow" of policy ${policy.name}`] : [];
  return [`refused: ${text}`, ...more];
}

/** The length of what stands before the suffix; undefined without it. */
function lengthBefore({ folded, foldedLength, labelCount, lengthOf }: QuestionName): number | undefined {
  if (labelCount < SUFFIX_LABELS) return undefined;
  const length = lengthOf[labelCount - SUFFIX_LABELS] as number;
  const isBelow = foldedLength - length === SUFFIX.length && SUFFIX.every((byte, at) => folded[length + at] === byte);
  return isBelow ? length : undefined;
}

function textData(text: string): Uint8Array {
  const bytes = Buffer.from(text).subarray(0, STRING_BYTES_MAX);
  return Buffer.concat([Buffer.of(bytes.length), bytes]);
}
