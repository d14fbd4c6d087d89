/** For docs/codes.md, what to do about errors whose texts do not say so; for docs/log-messages.md, what messages of the log mean. */
export const EXPLANATIONS = {
  errors: {
    POLICY_OWNED:
      "Another dns11 has the kernel's tables of policies, which one process at a time can change. End it, or start this one with `--replace`.",
    NO_POLICY: "dns11 policy lists the containers that have one.",
  },
  log: [
    [
      /a policy is not enforceable/,
      "The kernel cannot hold the container to its [policy](policy.md#hold-connections-too) with `addresses: enforce`; `reason` says why. Start it without that, or give it a policy with `addresses: names`.",
    ],
    [
      /a policy (?:refused|would have refused) a name/,
      "A query of the container is not what its [policy](policy.md) allows; `rule` names the rule and its line. The same query is logged again after a minute; `dns11 policy log` has more. The name is left out unless `queries.names` is full.",
    ],
    [
      /an operator allows a name/,
      "Somebody who may use the control socket has allowed a container a name for a while: `dns11 policy allow`. `grant` names the process.",
    ],
    [
      /cannot close the networks of policies/,
      "Networks of a policy with `addresses: enforce` are not closed before their containers are known; tried again at the next change. See `reason`.",
    ],
    [
      /cannot enforce a policy/,
      "The kernel refused the rules of the container; tried again every second. See `reason`.",
    ],
    [
      /^cannot hold a container that is not known/,
      "What it sends passes until it is known; tried again with the next change. See `reason`.",
    ],
    [
      /^cannot keep which networks are to be closed/,
      "After the next boot, the networks of enforced policies are not closed before Docker starts, or as they were earlier. `reason` says why, as `dns11 policy` does.",
    ],
    [
      /cannot (?:read|write) for whom policies ha(?:d|ve) ended/,
      "Containers whose [lease](policy.md#for-as-long-as-a-program-runs) had ended closed are held by the settings alone. See `reason`.",
    ],
    [
      /^cannot remove the rules for containers that are gone/,
      "Rules that an earlier process left for containers that are gone stay for now; tried again every five seconds. See `reason`.",
    ],
    [
      /^holding a container that Docker does not describe/,
      "It might have a policy with `addresses: enforce`, so what it sends is dropped until dns11 knows it. Docker takes over 250 ms to describe it, as it does with an image of many megabytes of labels, or cannot.",
    ],
  ],
} as const;
