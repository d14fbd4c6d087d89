import type { NamespacePolicy } from "../../policy/judge/namespace-policy.ts";
import type { Client } from "../../query/client/client.ts";
import type { RunCore, Running } from "../contract.ts";
import { AnswerGate } from "./gate/answer-gate.ts";
import { PolicyGate } from "./gate/policy-gate.ts";

export function open({ observe, policies: book }: RunCore): Running {
  const answers = new AnswerGate(book);
  // Clients in one namespace have the same.
  const gates = new WeakMap<NamespacePolicy, PolicyGate>();
  const gateOf = (policy: NamespacePolicy): PolicyGate => {
    const known = gates.get(policy) ?? new PolicyGate(policy, answers);
    gates.set(policy, known);
    return known;
  };
  observe({
    open: (containerId: string, client: Client) => {
      const policed = {
        setPolicy: (policy: NamespacePolicy | undefined) => void (client.policy = policy && gateOf(policy)),
        forgetAnswers: () => client.repeater?.forget(),
        onClose: (act: () => void) => client.onClose(act),
      };
      book.open(policed, containerId);
      return undefined;
    },
    close: () => undefined,
  });
  return {};
}
