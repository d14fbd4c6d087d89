/**
 * RuleMeans: by what rules are held on this machine. Each tier is tried whole in an empty namespace that is gone a moment
 * later, the best first; whoever wants one and no other gets that one, or is told why not.
 */
import { LIMITS } from "../../base/limits.ts";
import { CONTAINER_CAPTURE, DOCKER_RESOLVER } from "../capture/capture.ts";
import type { NamespaceRunner } from "../namespace/namespace-runner.ts";
import { PASSTHROUGH_MARK } from "../namespace/dial.ts";
import { openRuleSet } from "../rules/open-rule-set.ts";
import { servingPlan } from "../rules/plan.ts";
import { TRIAL_MARK } from "../rules/probe.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { Fault, codeOf, reasonOf } from "../../base/lib/fault.ts";
import type { ReportEvent } from "../../base/model/event.ts";
import {
  RULE_BACKENDS,
  type RuleBackendChoice,
  type RuleBackend,
  type RuleBackendSetting,
} from "../../base/model/rule-backend.ts";

/** What is needed for each. */
const REQUIREMENTS: Readonly<Record<RuleBackend, string>> = {
  "nft-owner":
    "Linux 5.12 or later with nf_tables, NAT and connection tracking (CONFIG_NF_TABLES, CONFIG_NFT_NAT, CONFIG_NFT_CT)",
  nft: "nf_tables with NAT and connection tracking (CONFIG_NF_TABLES, CONFIG_NFT_NAT, CONFIG_NFT_CT)",
  "iptables-legacy":
    "the programs iptables-legacy and nsenter, CAP_NET_RAW, and the kernel's older tables (CONFIG_IP_NF_NAT, CONFIG_IP_NF_RAW, CONFIG_IP_NF_MANGLE)",
};

/** How an unknown table flag is answered. */
const NO_OWNER_ERRORS = new Set(["EOPNOTSUPP", "ENOTSUP", "EINVAL"]);

export function chooseRuleBackend(
  runner: NamespaceRunner,
  memory: NetlinkMemory,
  wish: RuleBackendSetting,
): RuleBackendChoice {
  const tiers = wish === "auto" ? RULE_BACKENDS : [wish];
  const failures: string[] = [];
  let cause: unknown;
  for (const tier of tiers) {
    // Without a zone of their own conversations still work; that is better than nothing, where there is nothing else.
    for (const hasZones of tier === "iptables-legacy" ? [true, false] : [true]) {
      try {
        tryBackend({ backend: tier, hasZones }, runner, memory);
        return { backend: tier, hasZones };
      } catch (error) {
        cause = error;
        if (hasZones) failures.push(`${tier}: ${failureText(tier, error)}`);
      }
    }
  }
  throw new Fault("KERNEL", `The rules that dns11 needs cannot be made here: ${failures.join("; ")}`, {
    cause,
    remedy:
      tiers.map((tier) => `${tier} needs ${REQUIREMENTS[tier]}.`).join(" ") +
      (wish === "auto" ? "" : " Or leave the choice to dns11: rules auto."),
    isFinal: true,
  });
}

function tryBackend(means: RuleBackendChoice, runner: NamespaceRunner, memory: NetlinkMemory): void {
  const plan = servingPlan({
    capture: CONTAINER_CAPTURE,
    listening: [{ address: DOCKER_RESOLVER, udpPort: 1, tcpPort: 1 }],
    zone: 1,
    sparedPorts: [],
    passthroughMark: PASSTHROUGH_MARK,
    trialMark: TRIAL_MARK,
  });
  runner.withinScratch(() => {
    const keeper = openRuleSet(means, memory, undefined);
    try {
      keeper.install(plan, []);
    } finally {
      keeper.close();
    }
  });
}

function failureText(tier: RuleBackend, error: unknown): string {
  const isUnowned = tier === "nft-owner" && NO_OWNER_ERRORS.has(codeOf(error) ?? "");
  return isUnowned ? "this kernel has no tables that belong to a process" : reasonOf(error);
}

/** What is not as it should be with rules that nobody owns. */
export function warnOfRuleBackend(
  { backend: tier, hasZones }: RuleBackendChoice,
  isKept: boolean,
  tell: ReportEvent,
): void {
  if (tier === "nft-owner" || (tier === "nft" && isKept)) return;
  tell(
    { tier, remedy: "After a kill or a hang: dns11 cleanup, or start dns11 again." },
    "rules of this tier stay when dns11 is killed or hangs: queries of all containers it served then fail until they are removed",
    "warn",
  );
  if (tier === "iptables-legacy") {
    tell(
      { tier, seconds: LIMITS.verifyUnwatchedEveryMs / 1000 },
      "nobody tells when such rules are flushed: they are looked at this often",
      "warn",
    );
  }
  if (!hasZones) {
    tell(
      { tier, remedy: "Have the kernel's module xt_CT and table raw loaded." },
      "without connection tracking zones, clients that keep their port may wait up to half a minute when dns11 begins or ends",
      "warn",
    );
  }
}
