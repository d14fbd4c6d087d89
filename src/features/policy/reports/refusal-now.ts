import { bareName, presentedLabels } from "../../../base/dns/name.ts";
import { CLASS } from "../../../base/dns/record.ts";
import { StoredName } from "../../../base/model/label-table.ts";
import type { PolicyRefusal } from "../../../control/causes/situation.ts";
import type { PolicyBook } from "../book/policy-book.ts";
import type { Refusal } from "../judge/refusal.ts";

const LOGGED: ReadonlySet<Refusal["reason"]> = new Set([
  "private",
  "peers",
  "host",
  "host-address",
  "denied",
  "questions",
]);

/** Another answer, or the same one later, would not be refused. */
const NOT_OF_NAME: ReadonlySet<Refusal["reason"]> = new Set(["private", "host-address", "questions"]);

/**
 * Whether a policy refuses a name to a container now, by the code that decides about its queries, and by what it
 * has refused lately where the answer decided.
 */
export function refusalNow(
  policies: PolicyBook,
  ownerId: string,
  name: string,
  type: number,
): PolicyRefusal | undefined {
  const judge = policies.policyOf(ownerId);
  const labels = judge === undefined ? undefined : presentedLabels(name);
  if (judge === undefined || labels === undefined) return undefined;
  const question = { ...new StoredName(labels), type, class: CLASS.IN };
  if (judge.grantFor(question) !== undefined) return undefined;
  const denied = judge.name(question);
  if (denied?.isEnforced === true) return refusalOf(denied, true);
  // Only the answer tells, or how much was asked before.
  const logged = policies.log.last(ownerId, bareName(name), type)?.refusal;
  const isInForce = logged !== undefined && logged.isEnforced && judge.policies.includes(logged.policy);
  if (isInForce && LOGGED.has(logged.reason)) return refusalOf(logged, true);
  const refusal = judge.forward(question, true);
  return refusal?.isEnforced === true ? refusalOf(refusal, false) : undefined;
}

function refusalOf({ text, reason }: Refusal, isCertain: boolean): PolicyRefusal {
  return { text, isCertain, isForName: !NOT_OF_NAME.has(reason) };
}
