/**
 * PolicyCauses: a policy refuses the name, so that it fails on purpose.
 */
import type { Cause } from "../../api/causes.ts";
import { bareName } from "../../base/dns/name.ts";
import { commandOf } from "../../base/lib/command-line.ts";
import { type Situation, cause } from "./situation.ts";

const ALLOW_FOR = "15m";

export function policyCauses({ policy, name, client }: Situation): Cause[] {
  if (policy === undefined) return [];
  const sentence = `"${name}" is refused to ${client.name} by ${policy.text}`;
  if (!policy.isForName)
    return [cause("policy-denied", sentence, { advice: "if it is wanted, change the policy, and dns11 reload" })];
  const fix = commandOf("dns11", "policy", "allow", bareName(name), "--in", client.name, "--for", ALLOW_FOR);
  return [cause("policy-denied", sentence, { fix })];
}
