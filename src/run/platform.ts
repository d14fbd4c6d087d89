/**
 * Platform: what a run needs of the machine: the way into namespaces, the netlink memory, and the rule backend. Checks
 * that may fail run here, before any container is touched.
 */
import type { Status } from "../api/status.ts";
import { LIMITS } from "../base/limits.ts";
import type { RunSettings } from "../config/settings.ts";
import { MORE_DESCRIPTORS } from "../container/attach/attachment-parts.ts";
import { chooseRuleBackend, warnOfRuleBackend } from "../container/attach/rule-backend-choice.ts";
import { NamespaceRunner, warmThreadPool } from "../container/namespace/namespace-runner.ts";
import { checkCapabilities } from "../container/preflight.ts";
import { descriptorsMax, preallocateDescriptors, roomForContainers } from "../kernel/descriptors.ts";
import type { KernelAnswers } from "../kernel/answers/kernel-answers.ts";
import { NetlinkMemory } from "../kernel/netlink-socket.ts";
import type { AnsweredByReport } from "../base/model/answered-by.ts";
import type { RuleBackendChoice } from "../base/model/rule-backend.ts";
import type { Log } from "../base/log/log.ts";
import { eventLogger } from "../base/log/event-logger.ts";
import { limitMemoryGrowth } from "./heap.ts";
import { denyKernelAnswers, denyUnusedCalls } from "./deny-system-calls.ts";
import { loadKernelAnswers } from "./load-kernel-answers.ts";

export interface Platform {
  readonly runner: NamespaceRunner;
  readonly memory: NetlinkMemory;
  readonly ruleBackend: RuleBackendChoice;
  /** The same, for the status. */
  readonly report: Pick<Status, "ruleBackend" | "answers">;
  /** Undefined where the process answers all queries; then the reason, if that is not what is set. */
  readonly kernelAnswers: KernelAnswers | undefined;
  readonly noKernelAnswers: string | undefined;
}

export async function preparePlatform(settings: RunSettings, log: Log): Promise<Platform> {
  checkCapabilities();
  limitMemoryGrowth();
  preallocateDescriptors();
  await warmThreadPool();
  denyUnusedCalls(settings, log);
  const runner = new NamespaceRunner();
  const memory = new NetlinkMemory();
  const ruleBackend = await chooseRuleBackend(runner, memory, settings.ruleBackend);
  warnOfRuleBackend(ruleBackend, settings.keeper === "on", eventLogger(log));
  warnOfFewDescriptors(log);
  const { kernelAnswers, reason, remedy } = loadKernelAnswers(settings, ruleBackend, runner, log);
  if (kernelAnswers === undefined) denyKernelAnswers(settings);
  const answers: AnsweredByReport =
    reason === undefined ? { by: "kernel" } : { by: "process", reason, ...(remedy !== undefined && { remedy }) };
  const report = { ruleBackend: ruleBackend.backend, ...(settings.answers !== "process" && { answers }) };
  return { runner, memory, ruleBackend, report, kernelAnswers, noKernelAnswers: reason };
}

/** For a preview: no rules are made. */
export function previewPlatform(): Platform {
  checkCapabilities();
  return {
    runner: new NamespaceRunner(),
    memory: new NetlinkMemory(),
    ruleBackend: { backend: "nft-owner" },
    report: { ruleBackend: "nft-owner" },
    kernelAnswers: undefined,
    noKernelAnswers: undefined,
  };
}

/** A container without free descriptors is not attached and stays with Docker's resolver. */
function warnOfFewDescriptors(log: Log): void {
  const descriptors = descriptorsMax();
  const containers = roomForContainers(descriptors);
  if (containers >= LIMITS.containersExpected) return;
  log.warn(
    { descriptors, containers, remedy: MORE_DESCRIPTORS },
    "descriptor limit is low, containers beyond it stay with Docker's resolver",
  );
}
