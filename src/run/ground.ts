/**
 * Ground: what a run stands on: the way into namespaces, the memory of netlink, and by what rules are held here. What may
 * refuse to work refuses here, before anything of a container's is touched.
 */
import { LIMITS } from "../base/limits.ts";
import type { RunSettings } from "../config/settings.ts";
import { MORE_DESCRIPTORS } from "../container/attach/parts.ts";
import { chooseRuleBackend, warnOfRuleBackend } from "../container/attach/rule-backend-choice.ts";
import { Bracket, warmThreadPool } from "../container/namespace/bracket.ts";
import { checkCapabilities } from "../container/preflight.ts";
import { descriptorsMax, foreseeDescriptors, roomForContainers } from "../kernel/descriptors.ts";
import { NetlinkMemory } from "../kernel/netlink-socket.ts";
import type { RuleBackendChoice } from "../base/model/rule-backend.ts";
import type { Log } from "../base/log/log.ts";
import { eventLogger } from "../base/log/event-logger.ts";
import { keepHeapSmall } from "./heap.ts";
import { limitCalls } from "./limit-calls.ts";

export interface Ground {
  readonly bracket: Bracket;
  readonly memory: NetlinkMemory;
  readonly means: RuleBackendChoice;
}

export async function prepareGround(settings: RunSettings, log: Log): Promise<Ground> {
  checkCapabilities();
  keepHeapSmall();
  foreseeDescriptors();
  await warmThreadPool();
  limitCalls(settings, log);
  const bracket = new Bracket();
  const memory = new NetlinkMemory();
  const means = chooseRuleBackend(bracket, memory, settings.ruleBackend);
  warnOfRuleBackend(means, settings.keeper === "on", eventLogger(log));
  warnOfRoom(log);
  return { bracket, memory, means };
}

/** For a look at what would be done: no rules are made. */
export function previewGround(): Ground {
  checkCapabilities();
  return {
    bracket: new Bracket(),
    memory: new NetlinkMemory(),
    means: { backend: "nft-owner", hasZones: true },
  };
}

/** Whoever has no room is not attached, and Docker's resolver answers there. */
function warnOfRoom(log: Log): void {
  const descriptors = descriptorsMax();
  const room = roomForContainers(descriptors);
  if (room >= LIMITS.containersExpected) return;
  log.warn(
    { descriptors, room, remedy: MORE_DESCRIPTORS },
    "there are descriptors for few containers; more are left to Docker's resolver",
  );
}
