/**
 * Doctor fix: repairs only what belongs to dns11: rules and sockets through the running instance, leftovers of a killed one,
 * and stale conntrack entries. It reports each action.
 */
import { staleTranslations } from "./checks/namespace-check.ts";
import { proveNamespace } from "../container/namespace/proof.ts";
import type { ContainerFact } from "../container/facts/fact.ts";
import { deleteTracked } from "../kernel/conntrack.ts";
import { closeQuietly } from "../kernel/libc.ts";
import { reasonOf } from "../base/lib/fault.ts";
import type { CheckCode, Checks, Finding } from "../base/model/finding.ts";
import { unlessLocked } from "../container/namespace/rules-locked.ts";
import { type CleanupResult, removeOrphanedRules } from "../container/rules/orphaned-rules.ts";
import type { NetNamespace } from "../kernel/net-namespace.ts";
import { type InspectedContainer, inspectContainers } from "./inspected-container.ts";
import { type DoctorContext, type MachineOptions, checkMachine } from "./machine-check.ts";
import type { CheckedSubject } from "./problems.ts";
import type { RepairReport } from "../api/status.ts";

/** What is repaired without the running instance. */
const REPAIRED_HERE = "conntrack-stale";
/** Checks of what belongs to dns11; the findings show whether a repair worked. */
const OWN_CHECKS: ReadonlySet<string> = new Set([REPAIRED_HERE, "leftovers", "dns11"]);
const OUTCOMES: Readonly<Record<RepairReport["outcome"], string>> = {
  verified: "reinstalled the rules; queries get through",
  reattached: "attached again with new sockets and rules; queries get through",
  released: "released the container from quarantine and attached it",
  failed: "attached again, but queries do not get through",
  "not-served": "nothing to repair: dns11 does not serve the container",
};

/** Removes the leftovers of a killed instance: all of them, or those in one container. */
export type CleanUp = (onlyId: string | undefined) => Promise<CleanupResult>;

/** Call only if no instance is running. */
export async function fixMachine(
  cleanUp: CleanUp,
  machine: CheckedSubject,
  containers: readonly CheckedSubject[],
  onlyId: string | undefined,
): Promise<readonly string[]> {
  const isLeft =
    isWrong(machine, "leftovers") || containers.some((each) => isWrong(each, "rules") && !isWrong(each, "attachment"));
  if (!isLeft) return [];
  try {
    const { did, failed } = await cleanUp(onlyId);
    return [...did, ...failed.map((line) => `not cleaned up: ${line}`)];
  } catch (error) {
    return [`cleanup failed: ${reasonOf(error)}`];
  }
}

/** The actions taken in each container, by its name. */
export async function fixContainers(
  options: MachineOptions,
  containers: readonly CheckedSubject[],
  checks: Checks,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const did = new Map<string, readonly string[]>();
  const repairable = containers.filter((each) => isRepairable(each, checks) || isWrong(each, REPAIRED_HERE));
  if (repairable.length === 0) return did;
  const { context } = await checkMachine(options);
  if (context === undefined) return did;
  try {
    const inspected = new Map((await inspectContainers(context)).map((each) => [each.fact.name, each]));
    for (const each of repairable) {
      const found = inspected.get(each.subject);
      if (found !== undefined) did.set(each.subject, await fixContainer(context, found, each, checks));
    }
    return did;
  } finally {
    context.close();
  }
}

async function fixContainer(
  context: DoctorContext,
  { fact }: InspectedContainer,
  checked: CheckedSubject,
  checks: Checks,
): Promise<readonly string[]> {
  const { status, client, memory } = context;
  const did: string[] = [];
  try {
    if (status !== undefined && isRepairable(checked, checks)) {
      const { outcome } = await client.repair(fact.id);
      if (outcome !== "not-served") did.push(OUTCOMES[outcome]);
      else if (isWrong(checked, "rules")) did.push(...(await removeLeftRules(context, fact)));
    }
    if (isWrong(checked, REPAIRED_HERE)) {
      const count = await inContainer(
        context,
        fact,
        async (netns) => await netns.read(() => deleteTracked(memory, staleTranslations(memory))),
      );
      did.push(`deleted ${count} stale conntrack entries`);
    }
    return did;
  } catch (error) {
    return [...did, `repair failed: ${reasonOf(error)}`];
  }
}

async function removeLeftRules(context: DoctorContext, fact: ContainerFact): Promise<string[]> {
  const { did, failed } = await inContainer(context, fact, removeOrphanedRules);
  return [...did, ...failed.map((line) => `not removed: ${line}`)];
}

async function inContainer<T>(
  { host, runner, memory }: DoctorContext,
  fact: ContainerFact,
  work: (netns: NetNamespace) => Promise<T>,
): Promise<T> {
  const { id: containerId, sandboxKey, pid } = fact;
  const { fd } = proveNamespace({ containerId, sandboxKey, pid }, host, runner.homeId);
  try {
    return await unlessLocked(runner, { fd, memory }, work);
  } finally {
    closeQuietly(fd);
  }
}

/** The findings that dns11 cannot repair: a user's decision, or another program's doing. */
export function notRepairable(findings: readonly Finding[], checks: Checks): string[] {
  return findings
    .filter(({ state }) => state === "problem" || state === "warning")
    .filter(({ code }) => checks[code]?.isRepairable !== true && !OWN_CHECKS.has(code))
    .map(({ what, remedy }) => `${what}: dns11 cannot repair this${remedy === undefined ? "" : `. ${remedy}`}`);
}

/** Whether the running instance may be able to repair something. */
function isRepairable({ findings }: CheckedSubject, checks: Checks): boolean {
  return findings.some(({ code, state }) => checks[code]?.isRepairable === true && state !== "ok");
}

function isWrong({ findings }: CheckedSubject, wanted: CheckCode): boolean {
  return findings.some(({ code, state }) => code === wanted && state !== "ok");
}
