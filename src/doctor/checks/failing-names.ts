/**
 * Failing names: what fails in containers according to a running dns11, and why. It is a problem only if the cause is known,
 * a container's name fails for it, and the name has failed lately and not resolved since.
 */
import type { Cause, LastingFix } from "../../api/causes.ts";
import type { ContainersRequest, ControlClient } from "../../api/control-client.ts";
import { type FailureReport, type FailuresReport, type MisleadingName, injectedText } from "../../api/failures.ts";
import { type FailingName, type Problem, causeKey, namesOf } from "../../api/problems.ts";
import { type Finding, finding } from "../../base/model/finding.ts";

const NO_FAILURES: FailuresReport = { failures: [], misleading: [], unwatched: [], omitted: 0 };

/** Reads those of some containers, or of all; undefined if they are unknown. */
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
  const own = failures.filter((each) => each.containerId === containerId && counts(each));
  return namesOf(own).map((name) => failureFinding(name, nowMs));
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

/** What tests have asked for: it breaks names, and is no fault. */
export function injectedFindings({ injected = [] }: FailuresReport = NO_FAILURES): Finding[] {
  return injected.map((each) =>
    finding("failing-names", "warning", injectedText(each, each.since), "To end it, end that process"),
  );
}

/** Names that the outside world does not know are not a fault here. */
function counts({ earlier, isContainerName, result, cause }: FailureReport): boolean {
  return earlier === undefined && (isContainerName || result !== "NXDOMAIN" || cause?.code === "one-family");
}

function failureFinding(problem: Problem<FailingName>, nowMs: number): Finding {
  const { symptoms, names, results, cause, count, last } = problem;
  const ago = Math.max(0, Math.round((nowMs - Date.parse(last ?? "")) / 1_000));
  const [name = null] = names;
  const about = name === null ? "a name (hidden)" : `"${name}"`;
  const symptom = `${count} ${count === 1 ? "query" : "queries"} got ${results.join(", ")}, the last ${ago} s ago`;
  const what = `${about} does not resolve: ${symptom}`;
  const isProblem = cause?.isBreaking === true && symptoms.some(({ isContainerName }) => isContainerName);
  const state = isProblem ? "problem" : "warning";
  const shared = {
    key: cause === null ? "" : causeKey(cause),
    ...(cause !== null && { cause: cause.code }),
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

export function fixesOf({ fix, lastingFix }: Cause): Pick<Finding, "fixNow" | "fixForGood" | "commandForGood"> {
  return {
    ...(fix !== null && { fixNow: fix }),
    ...(lastingFix !== null && {
      fixForGood: lastingText(lastingFix),
      ...(lastingFix.command !== undefined && { commandForGood: lastingFix.command }),
    }),
  };
}

function lastingText({ file, key, change }: LastingFix): string {
  return `${file ?? "the Compose file"}: ${key}: ${change}`;
}

export function remedyOf({ fix, advice, lastingFix }: Cause): string | undefined {
  const now = fix === null ? [] : [`To fix it now: ${fix}`];
  const words = advice === undefined ? [] : [capitalized(advice)];
  const lasting = lastingFix === null ? [] : [`To fix it for good, in ${lastingText(lastingFix)}`];
  const all = [...now, ...words, ...lasting];
  return all.length === 0 ? undefined : all.join(". ");
}

function capitalized(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
