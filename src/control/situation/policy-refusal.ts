/**
 * PolicyRefusal: whether a policy refuses a name to a container now, by the code that decides about its queries, and by what it
 * has refused lately where the answer decided.
 */
import { bareName, presentedLabels } from "../../base/dns/name.ts";
import { CLASS } from "../../base/dns/record.ts";
import { StoredName } from "../../base/model/stored-name.ts";
import type { PolicyBook } from "../../policy/book/policy-book.ts";
import type { Refusal } from "../../policy/judge/refusal.ts";
import type { PolicyRefusal } from "../causes/situation.ts";

export function refusalNow(
  policies: PolicyBook | undefined,
  ownerId: string,
  name: string,
  type: number,
): PolicyRefusal | undefined {
  const judge = policies?.policyOf(ownerId);
  const labels = judge === undefined ? undefined : presentedLabels(name);
  if (policies === undefined || judge === undefined || labels === undefined) return undefined;
  const question = { ...new StoredName(labels), type, class: CLASS.IN };
  if (judge.grantFor(question) !== undefined) return undefined;
  const denied = judge.name(question);
  if (denied?.isEnforced === true) return refusalOf(denied, true);
  // Only the answer tells.
  const logged = policies.log.last(ownerId, bareName(name), type)?.refusal;
  const isInForce = logged !== undefined && logged.isEnforced && judge.policies.includes(logged.policy);
  if (isInForce && BY_ANSWER.has(logged.reason)) return refusalOf(logged, true);
  const refusal = judge.forward(question, true);
  return refusal?.isEnforced === true ? refusalOf(refusal, false) : undefined;
}

const BY_ANSWER: ReadonlySet<Refusal["reason"]> = new Set(["private", "peers", "host", "denied"]);

function refusalOf({ text, reason }: Refusal, isCertain: boolean): PolicyRefusal {
  return { text, isCertain, isForName: reason !== "private" };
}
