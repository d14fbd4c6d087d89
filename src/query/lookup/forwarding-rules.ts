/**
 * ForwardingRules: which names are not forwarded, and by which rule: names of domains that are local, the special-use names
 * of RFC 6761 and its successors and, if configured, names without a dot and the reverse names of private addresses. A
 * domain-specific route takes precedence over all but the first.
 */
import { presentedLabels, wireLabels, sameBytes } from "../../base/dns/name.ts";
import { TYPE } from "../../base/dns/record-type.ts";
import type { Behaviour } from "../../base/model/behaviour.ts";
import { StoredName } from "../../base/model/label-table.ts";
import type { LocalOnlyPolicy } from "../../base/model/upstream-policy.ts";
import type { Route, Upstreams } from "../../base/model/view.ts";
import type { QuestionName } from "../../base/model/visible-names.ts";

/** A rule that keeps a name from being forwarded. */
export type ForwardingRule =
  /** The route of its domain has no servers by intent. */
  | "local"
  /** Nothing is forwarded for this client. */
  | "refused"
  /** It has no dot, and ndots is set. */
  | "ndots"
  | SpecialName
  /** It has no dot, and `forward.domain-needed` is on. */
  | "no-dot"
  /** It is the reverse name of a private address, and `forward.bogus-priv` is on. */
  | "private-reverse";

/** A name that a standard gives a meaning. */
type SpecialName = "localhost" | "nonexistent" | "resolver" | "loopback-reverse";

/** What becomes of a name that no source of names has. */
interface Forwarding {
  readonly route: Route;
  /** Undefined if it is forwarded on that route. */
  readonly rule: ForwardingRule | undefined;
}

const LOCALHOST = suffixOf("localhost");
const LOOPBACK_REVERSE = [suffixOf("1.0.0.127.in-addr.arpa"), suffixOf(`1.${"0.".repeat(31)}ip6.arpa`)];

/** Top-level domains that never exist: RFC 6761 (invalid), RFC 7686 (onion). */
const NONEXISTENT = ["invalid", "onion"].map(suffixOf);
/** Discovery of the resolver's own encrypted endpoints: there are none (RFC 9462, 6.4). */
const RESOLVER = suffixOf("resolver.arpa");

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
].map(suffixOf);

export class ForwardingRules {
  readonly #behaviour: Pick<Behaviour, "answersSpecialNames">;
  readonly #policy: LocalOnlyPolicy;

  constructor(behaviour: Pick<Behaviour, "answersSpecialNames">, policy: LocalOnlyPolicy) {
    this.#behaviour = behaviour;
    this.#policy = policy;
  }

  /** The rule that applies to a name on its route; undefined if it is forwarded. */
  ruleOf(name: QuestionName, type: number, { isNdotsSet }: Upstreams, route: Route): ForwardingRule | undefined {
    if (route.isRefused === true) return "refused";
    if (route.labelCount > 0) return route.isLocal ? "local" : undefined;
    // Special names keep their meaning also where nothing is forwarded.
    const special = this.#behaviour.answersSpecialNames ? specialName(name, type) : undefined;
    if (special !== undefined) return special;
    if (route.isLocal) return "local";
    const isDotless = name.labelCount < 2 && (type === TYPE.A || type === TYPE.AAAA);
    if (isDotless && isNdotsSet) return "ndots";
    const { keepsDotless, keepsPrivateReverse } = this.#policy;
    if (isDotless && keepsDotless) return "no-dot";
    return keepsPrivateReverse && PRIVATE_REVERSE.some((zone) => endsWith(name, zone)) ? "private-reverse" : undefined;
  }

  /** Decides about a name in text, as reports have it; undefined for a name that no query can have. */
  forwardingOf(text: string, type: number, upstreams: Upstreams): Forwarding | undefined {
    const labels = presentedLabels(text);
    if (labels === undefined || upstreams.routes.length === 0) return undefined;
    const name = new StoredName(labels);
    const route = routeOf(name, upstreams);
    return { route, rule: this.ruleOf(name, type, upstreams, route) };
  }
}

function specialName(name: QuestionName, type: number): SpecialName | undefined {
  if (endsWith(name, LOCALHOST)) return "localhost";
  if (NONEXISTENT.some((zone) => endsWith(name, zone))) return "nonexistent";
  if (endsWith(name, RESOLVER)) return "resolver";
  return type === TYPE.PTR && LOOPBACK_REVERSE.some((each) => endsWith(name, each)) ? "loopback-reverse" : undefined;
}

function suffixOf(name: string): Suffix {
  return { suffix: wireLabels(name) as Uint8Array, labelCount: name.split(".").length };
}

export function routeOf(question: QuestionName, { routes }: Upstreams): Route {
  const last = routes.length - 1;
  for (let i = 0; i < last; i++) {
    const route = routes[i] as Route;
    if (endsWith(question, route)) return route;
  }
  return routes[last] as Route;
}

type Suffix = Pick<Route, "suffix" | "labelCount">;

/** Compares whole labels, so that "notcorp.example" is not below "corp.example". */
function endsWith(question: QuestionName, { suffix, labelCount }: Suffix): boolean {
  const labels = question.labelCount - labelCount;
  if (labels < 0) return false;
  const start = question.lengthOf[labels] as number;
  return question.foldedLength - start === suffix.length && sameBytes(question.folded, start, suffix, 0, suffix.length);
}
