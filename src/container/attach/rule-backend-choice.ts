/**
 * RuleBackendChoice: which rule backend this machine supports. Each backend is tried with a full plan in an empty
 * scratch namespace, the best first. A backend named in the settings is used or refused with the reason.
 */
import { CONTAINER_CAPTURE, DOCKER_RESOLVER } from "../capture/capture.ts";
import type { NamespaceRunner } from "../namespace/namespace-runner.ts";
import { randomMark } from "../namespace/passages.ts";
import { type PlanInput, servingPlan } from "../rules/plan.ts";
import { TRIAL_MARK } from "../rules/probe.ts";
import { RuleSet } from "../rules/rule-set.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { Fault, codeOf, reasonOf } from "../../base/lib/fault.ts";
import type { ReportEvent } from "../../base/log/log.ts";
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
    try {
      await tryBackend(backend, runner, memory);
      return { backend, matchesGroups: await matchesGroups(backend, runner, memory) };
    } catch (error) {
      cause = error;
      failures.push(`${backend}: ${failureText(backend, error)}`);
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

/** Since Linux 5.13. Where rules outlive their process, so would the number of a group that is gone. */
async function matchesGroups(backend: RuleBackend, runner: NamespaceRunner, memory: NetlinkMemory): Promise<boolean> {
  if (backend !== "nft-owner") return false;
  try {
    await tryBackend(backend, runner, memory, { closesResolver: true, passthroughGroup: { id: 1n, level: 1 } });
    return true;
  } catch {
    return false;
  }
}

async function tryBackend(
  backend: RuleBackend,
  runner: NamespaceRunner,
  memory: NetlinkMemory,
  more: Partial<PlanInput> = {},
): Promise<void> {
  const plan = servingPlan({
    capture: CONTAINER_CAPTURE,
    listening: [{ address: DOCKER_RESOLVER, udpPort: 1, tcpPort: 1 }],
    zone: 1,
    sparedPorts: [],
    passthroughMark: randomMark(),
    trialMark: TRIAL_MARK,
    ...more,
  });
  await runner.withScratch(memory, async (netns) => {
    const rules = new RuleSet(backend, netns);
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
export function warnOfRuleBackend({ backend }: RuleBackendChoice, hasKeeper: boolean, report: ReportEvent): void {
  if (backend === "nft-owner" || (backend === "nft" && hasKeeper)) return;
  report(
    { backend, remedy: "After a kill or a hang: dns11 cleanup, or start dns11 again." },
    "rules of this backend stay when dns11 is killed or hangs; lookups in all attached containers then fail until the rules are removed",
    "warn",
  );
}
