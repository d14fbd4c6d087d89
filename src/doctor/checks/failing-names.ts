/**
 * Failing names: what fails in containers according to a running dns11, and why. It is a problem only if the cause is known,
 * a container's name fails for it, and the name has failed lately and not resolved since.
 */
import type { Cause } from "../../api/causes.ts";
import type { ContainersRequest, ControlClient } from "../../api/control-client.ts";
import type { FailureReport, FailuresReport, MisleadingName } from "../../api/failures.ts";
import { type Finding, finding } from "../../base/model/finding.ts";

const RECENT_MS = 300_000;
const NO_FAILURES: FailuresReport = { failures: [], misleading: [], unwatched: [], omitted: 0 };

/** Of some containers, or of all; undefined if they are unknown. */
export async function readFailures(
  client: ControlClient,
  filter: ContainersRequest,
): Promise<FailuresReport | undefined> {
  try {
    return await client.failures(filter);
  } catch {
    // Not recorded, not served, or an older dns11: the check is left out.
    return undefined;
  }
}

/** The findings about the names that fail in one container. */
export function failureFindings(
  { failures }: FailuresReport = NO_FAILURES,
  containerId: string,
  nowMs = Date.now(),
): Finding[] {
  const groups = new Map<string, FailureReport[]>();
  for (const each of failures) {
    if (each.containerId !== containerId || !isFailing(each, nowMs)) continue;
    const key = JSON.stringify([each.name, each.result, each.cause?.sentence]);
    groups.set(key, [...(groups.get(key) ?? []), each]);
  }
  return [...groups.values()].map((reports) => failureFinding(reports, nowMs));
}

/**
 * The findings about names that resolve, but not to what their clients need. No query fails for a name of several services:
 * answers alternate.
 */
export function misleadingFindings({ misleading }: FailuresReport = NO_FAILURES): Finding[] {
  return misleading.map(({ cause }: MisleadingName) => ({
    ...finding(
      "failing-names",
      cause.isBreaking && cause.code !== "ambiguous" ? "problem" : "warning",
      cause.sentence,
      remedyOf(cause),
    ),
    ...fixesOf(cause),
  }));
}

/** It has failed lately and not resolved since. Names that the outside world does not know are not a fault here. */
function isFailing({ last, lastSuccess, isContainerName, result, isRunning }: FailureReport, nowMs: number): boolean {
  if (!isRunning || nowMs - Date.parse(last) > RECENT_MS) return false;
  if (lastSuccess !== null && lastSuccess >= last) return false;
  return isContainerName || result !== "NXDOMAIN";
}

function failureFinding(reports: readonly FailureReport[], nowMs: number): Finding {
  const [{ name, result, cause, isContainerName }] = reports as readonly [FailureReport];
  const count = reports.reduce((sum, each) => sum + each.count, 0);
  const lastMs = Math.max(...reports.map(({ last }) => Date.parse(last)));
  const ago = Math.max(0, Math.round((nowMs - lastMs) / 1_000));
  const about = name === null ? "a name (hidden)" : `"${name}"`;
  const symptom = `${count} ${count === 1 ? "query" : "queries"} got ${result}, the last ${ago} s ago`;
  const what = `${about} does not resolve: ${symptom}`;
  const isProblem = isContainerName && cause?.isBreaking === true;
  const state = isProblem ? "problem" : "warning";
  const shared = {
    key: keyOf(name, cause),
    title: "{} does not resolve",
    titleOfMany: "{} do not resolve",
    about,
    symptom: `${about}: ${symptom}`,
  };
  if (cause === null) return { ...finding("failing-names", state, what), shared };
  return {
    ...finding("failing-names", state, `${what}; ${cause.sentence}`, remedyOf(cause)),
    ...fixesOf(cause),
    shared: { ...shared, why: cause.sentence },
  };
}

/** Replicas of a service, and all names of a container that is down, have one cause. */
function keyOf(name: string | null, cause: Cause | null): string {
  if (cause === null) return "";
  const { code, fix, lastingFix } = cause;
  if (!cause.isBreaking) return code;
  return JSON.stringify([code, code === "not-running" ? fix : [name, lastingFix ?? fix]]);
}

function fixesOf({ fix, lastingFix }: Cause): Pick<Finding, "fixNow" | "fixForGood"> {
  return {
    ...(fix !== null && { fixNow: fix }),
    ...(lastingFix !== null && {
      fixForGood: `${lastingFix.file ?? "the Compose file"}: ${lastingFix.key}: ${lastingFix.change}`,
    }),
  };
}

function remedyOf({ fix, lastingFix }: Cause): string | undefined {
  const now = fix === null ? [] : [`To fix it now: ${fix}`];
  const lasting =
    lastingFix === null
      ? []
      : [`To fix it for good, in ${lastingFix.file ?? "the Compose file"}: ${lastingFix.key}: ${lastingFix.change}`];
  return now.length + lasting.length === 0 ? undefined : [...now, ...lasting].join(". ");
}
