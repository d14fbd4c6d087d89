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
import { NetlinkMemory } from "../kernel/netlink-socket.ts";
import type { RuleBackendChoice } from "../base/model/rule-backend.ts";
import { type Log, eventLogger } from "../base/log/log.ts";
import { limitMemoryGrowth } from "./heap.ts";
import { denyUnusedCalls } from "./deny-system-calls.ts";
import { readFileSync } from "node:fs";

export interface Platform {
  readonly runner: NamespaceRunner;
  readonly memory: NetlinkMemory;
  readonly ruleBackend: RuleBackendChoice;
  /** The same, for the status. */
  readonly report: Pick<Status, "ruleBackend">;
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
  return { runner, memory, ruleBackend, report: { ruleBackend: ruleBackend.backend } };
}

/** For a preview: no rules are made. */
export function previewPlatform(): Platform {
  checkCapabilities();
  return {
    runner: new NamespaceRunner(),
    memory: new NetlinkMemory(),
    ruleBackend: { backend: "nft-owner" },
    report: { ruleBackend: "nft-owner" },
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

/** By the name of the package: the path differs between the bundled program and the compiled module. */
const PACKAGE = new URL(import.meta.resolve("dns11/package.json"));

/** The version of the running package. */
export const VERSION = (JSON.parse(readFileSync(PACKAGE, "utf8")) as { readonly version: string }).version;
