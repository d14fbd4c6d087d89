import { bareName, presentedLabels } from "../../../base/dns/name.ts";
import { CLASS } from "../../../base/dns/record.ts";
import { commandOf } from "../../../base/lib/text.ts";
import { StoredName } from "../../../base/model/label-table.ts";
import { type Refusal as RefusedName, cause } from "../../../control/causes/situation.ts";
import type { AskedName } from "../../../control/situation/ports.ts";
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

/** How long an operator may allow a name at first. */
const ALLOW_FOR = "15m";
/** Another answer, or the same one later, would not be refused. */
const NOT_OF_NAME: ReadonlySet<Refusal["reason"]> = new Set(["private", "host-address", "questions"]);

/**
 * Whether a policy refuses a name to a container now, by the code that decides about its queries, and by what it
 * has refused lately where the answer decided.
 */
export function refusalNow(policies: PolicyBook, asked: AskedName): RefusedName | undefined {
  const { name, type, owner } = asked;
  const judge = policies.policyOf(owner.id);
  const labels = judge === undefined ? undefined : presentedLabels(name);
  if (judge === undefined || labels === undefined) return undefined;
  const question = { ...new StoredName(labels), type, class: CLASS.IN };
  if (judge.grantFor(question) !== undefined) return undefined;
  const denied = judge.name(question);
  if (denied?.isEnforced === true) return refusalOf(asked, denied, true);
  // Only the answer tells, or how much was asked before.
  const logged = policies.log.last(owner.id, bareName(name), type)?.refusal;
  const isInForce = logged !== undefined && logged.isEnforced && judge.policies.includes(logged.policy);
  if (isInForce && LOGGED.has(logged.reason)) return refusalOf(asked, logged, true);
  const refusal = judge.forward(question, true);
  return refusal?.isEnforced === true ? refusalOf(asked, refusal, false) : undefined;
}

function refusalOf({ name, client }: AskedName, { text, reason }: Refusal, isCertain: boolean): RefusedName {
  const sentence = `"${name}" is refused to ${client.name} by ${text}`;
  const parts = NOT_OF_NAME.has(reason)
    ? { advice: "if it is wanted, change the policy, and dns11 reload" }
    : { fix: commandOf("dns11", "policy", "allow", bareName(name), "--in", client.name, "--for", ALLOW_FOR) };
  return { cause: cause("policy-denied", sentence, parts), isCertain };
}
