/**
 * Doctor fix: repairs what is ours, and nothing else: rules and sockets through the instance that has them, what a killed
 * one left, and what the kernel remembers of queries that nobody is at the end of. Each thing done is told.
 */
import { staleTranslations } from "./checks/namespace-check.ts";
import { proveNamespace } from "../container/namespace/proof.ts";
import type { ContainerFact } from "../container/registry/fact.ts";
import { deleteTracked } from "../kernel/conntrack.ts";
import { closeQuietly } from "../kernel/libc.ts";
import { reasonOf } from "../base/lib/fault.ts";
import type { CheckCode, Finding } from "../base/model/finding.ts";
import { type CleanupResult, removeOrphanedRules } from "../container/rules/orphaned-rules.ts";
import { type InspectedContainer, inspectContainers } from "./inspected-container.ts";
import { type DoctorContext, type MachineOptions, checkMachine } from "./machine-check.ts";
import type { RepairReport } from "../api/status.ts";

export interface Repair {
  /** What was done, a sentence each. */
  readonly did: readonly string[];
  /** What is wrong still, and is not dns11's to change. */
  readonly left: readonly string[];
}

interface CheckedSubject {
  readonly subject: string;
  readonly findings: readonly Finding[];
}

/** What a repair by the running instance may mend. */
const REPAIRABLE_BY_INSTANCE: ReadonlySet<CheckCode> = new Set([
  "attachment",
  "rules",
  "listener",
  "answers",
  "kind-answers",
  "route-localnet",
]);
const REPAIRABLE: readonly CheckCode[] = [...REPAIRABLE_BY_INSTANCE, "conntrack-stale"];
/** What is dns11's own, whether or not it could be repaired: it is told among the findings. */
const OWN_CHECKS: ReadonlySet<CheckCode> = new Set([...REPAIRABLE, "leftovers", "dns11"]);
const OUTCOMES: Readonly<Record<RepairReport["outcome"], string>> = {
  verified: "dns11 made its rules anew, and queries come through",
  "attached-anew": "dns11 attached anew, with other sockets and rules, and queries come through",
  released: "it is no longer in quarantine, and dns11 attached it",
  failed: "dns11 tried to attach anew, and queries do not come through",
  "not-served": "nothing of dns11's is wanted there",
};

/** Removes what a killed instance left: everything, or what is left in one container. */
export type CleanUp = (onlyId: string | undefined) => Promise<CleanupResult>;

/** To be called where no instance is running. */
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
    return [`nothing was cleaned up: ${reasonOf(error)}`];
  }
}

/** What was done in each of these containers, by name. */
export async function fixContainers(
  order: MachineOptions,
  containers: readonly CheckedSubject[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const did = new Map<string, readonly string[]>();
  const mendable = containers.filter((each) => REPAIRABLE.some((code) => isWrong(each, code)));
  if (mendable.length === 0) return did;
  const { clinic } = await checkMachine(order);
  if (clinic === undefined) return did;
  try {
    const cases = new Map((await inspectContainers(clinic)).map((each) => [each.fact.name, each]));
    for (const each of mendable) {
      const found = cases.get(each.subject);
      if (found !== undefined) did.set(each.subject, await fixContainer(clinic, found, each));
    }
    return did;
  } finally {
    clinic.close();
  }
}

async function fixContainer(
  clinic: DoctorContext,
  { fact }: InspectedContainer,
  examined: CheckedSubject,
): Promise<readonly string[]> {
  const { status, client, memory } = clinic;
  const did: string[] = [];
  try {
    if (status !== undefined && [...REPAIRABLE_BY_INSTANCE].some((code) => isWrong(examined, code))) {
      const { outcome } = await client.repair(fact.id);
      if (outcome !== "not-served") did.push(OUTCOMES[outcome]);
      else if (isWrong(examined, "rules")) did.push(...removeLeftRules(clinic, fact));
    }
    if (isWrong(examined, "conntrack-stale")) {
      const count = inside(clinic, fact, () => deleteTracked(memory, staleTranslations(memory)));
      did.push(`the kernel forgot ${count} old translations of queries`);
    }
    return did;
  } catch (error) {
    return [...did, `not repaired: ${reasonOf(error)}`];
  }
}

function removeLeftRules(clinic: DoctorContext, fact: ContainerFact): string[] {
  const { did, failed } = inside(clinic, fact, () => removeOrphanedRules(clinic.memory));
  return [...did, ...failed.map((line) => `not removed: ${line}`)];
}

function inside<T>({ host, runner }: DoctorContext, fact: ContainerFact, work: () => T): T {
  const { id: containerId, sandboxKey, pid } = fact;
  const { fd } = proveNamespace({ containerId, sandboxKey, pid }, host, runner.homeId);
  try {
    return runner.within(fd, work);
  } finally {
    closeQuietly(fd);
  }
}

/** What is somebody's own decision, or nothing that dns11 could know better. */
export function notRepairable(findings: readonly Finding[]): string[] {
  return findings
    .filter(({ state, code }) => (state === "problem" || state === "warning") && !OWN_CHECKS.has(code))
    .map(({ what, remedy }) => `${what}: not dns11's to change${remedy === undefined ? "" : `. ${remedy}`}`);
}

function isWrong({ findings }: CheckedSubject, wanted: CheckCode): boolean {
  return findings.some(({ code, state }) => code === wanted && state !== "ok");
}
