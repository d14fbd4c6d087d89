/**
 * RuleBackendChoice: which rule backend this machine supports. Each backend is tried with a full plan in an empty
 * scratch namespace, the best first. A backend named in the settings is used or refused with the reason.
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

const REQUIREMENTS: Readonly<Record<RuleBackend, string>> = {
  "nft-owner":
    "Linux 5.12 or later with nf_tables, NAT and connection tracking (CONFIG_NF_TABLES, CONFIG_NFT_NAT, CONFIG_NFT_CT)",
  nft: "nf_tables with NAT and connection tracking (CONFIG_NF_TABLES, CONFIG_NFT_NAT, CONFIG_NFT_CT)",
  "iptables-legacy":
    "the programs iptables-legacy and nsenter, CAP_NET_RAW, and legacy iptables in the kernel (CONFIG_IP_NF_NAT, CONFIG_IP_NF_RAW, CONFIG_IP_NF_MANGLE)",
};

/** The kernel's errors for an unknown table flag. */
const NO_OWNER_ERRORS = new Set(["EOPNOTSUPP", "ENOTSUP", "EINVAL"]);

export async function chooseRuleBackend(
  runner: NamespaceRunner,
  memory: NetlinkMemory,
  setting: RuleBackendSetting,
): Promise<RuleBackendChoice> {
  const backends = setting === "auto" ? RULE_BACKENDS : [setting];
  const failures: string[] = [];
  let cause: unknown;
  for (const backend of backends) {
    // Connections work without their own zone; accept that where no backend supports zones.
    for (const hasZones of backend === "iptables-legacy" ? [true, false] : [true]) {
      try {
        await tryBackend({ backend, hasZones }, runner, memory);
        return { backend, hasZones };
      } catch (error) {
        cause = error;
        if (hasZones) failures.push(`${backend}: ${failureText(backend, error)}`);
      }
    }
  }
  throw new Fault("KERNEL", `Cannot install redirect rules on this machine: ${failures.join("; ")}`, {
    cause,
    remedy:
      backends.map((backend) => `${backend} needs ${REQUIREMENTS[backend]}.`).join(" ") +
      (setting === "auto" ? "" : " Or let dns11 choose: rule-backend: auto."),
    isFinal: true,
  });
}

async function tryBackend(choice: RuleBackendChoice, runner: NamespaceRunner, memory: NetlinkMemory): Promise<void> {
  const plan = servingPlan({
    capture: CONTAINER_CAPTURE,
    listening: [{ address: DOCKER_RESOLVER, udpPort: 1, tcpPort: 1 }],
    zone: 1,
    sparedPorts: [],
    passthroughMark: PASSTHROUGH_MARK,
    trialMark: TRIAL_MARK,
  });
  await runner.withScratch(memory, async (netns) => {
    const rules = openRuleSet(choice, netns);
    try {
      await rules.install(plan, []);
    } finally {
      rules.close();
    }
  });
}

function failureText(backend: RuleBackend, error: unknown): string {
  const isUnowned = backend === "nft-owner" && NO_OWNER_ERRORS.has(codeOf(error) ?? "");
  return isUnowned ? "this kernel does not support process-owned tables" : reasonOf(error);
}

/** Warns about the drawbacks of rules that no process owns. */
export function warnOfRuleBackend(
  { backend, hasZones }: RuleBackendChoice,
  hasKeeper: boolean,
  report: ReportEvent,
): void {
  if (backend === "nft-owner" || (backend === "nft" && hasKeeper)) return;
  report(
    { backend, remedy: "After a kill or a hang: dns11 cleanup, or start dns11 again." },
    "rules of this backend stay when dns11 is killed or hangs; lookups in all attached containers then fail until the rules are removed",
    "warn",
  );
  if (backend === "iptables-legacy") {
    report(
      { backend, seconds: LIMITS.verifyUnwatchedEveryMs / 1000 },
      "the kernel does not report when these rules are flushed; dns11 checks them at this interval",
      "warn",
    );
  }
  if (!hasZones) {
    report(
      { backend, remedy: "Load the kernel module xt_CT and the iptables table raw." },
      "conntrack zones are not supported; clients that reuse a source port may wait up to 30 s when dns11 starts or stops",
      "warn",
    );
  }
}
