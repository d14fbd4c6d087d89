/**
 * Failing names: what fails in containers according to a running dns11, and why. It is a problem only if the cause is known,
 * a container's name fails for it, and the name has failed lately and not resolved since.
 */
import { type Cause, lastingText } from "../../api/causes.ts";
import type { ContainersRequest, ControlClient } from "../../api/control-client.ts";
import { type FailureReport, type FailuresReport, injectedText } from "../../api/failures.ts";
import { type FailingName, type Problem, causeKey, namesOf } from "../../api/problems.ts";
import { type CheckCode, type Finding, type FindingState, finding } from "../../base/model/finding.ts";

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
  return misleading.map(({ cause }) => {
    const state = cause.isBreaking && cause.code !== "ambiguous" ? "problem" : "warning";
    return causeFinding("failing-names", state, cause.sentence, cause);
  });
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
    ...causeFinding("failing-names", state, `${what}; ${cause.sentence}`, cause),
    shared: { ...shared, why: cause.sentence },
  };
}

/** With what helps, in words and as commands. */
export function causeFinding(code: CheckCode, state: FindingState, detail: string, cause: Cause): Finding {
  const { fix, advice, lastingFix } = cause;
  const sentences = [
    ...(fix === null ? [] : [`To fix it now: ${fix}`]),
    ...(advice === undefined ? [] : [advice.slice(0, 1).toUpperCase() + advice.slice(1)]),
    ...(lastingFix === null ? [] : [`To fix it for good, in ${lastingText(lastingFix)}`]),
  ];
  return {
    ...finding(code, state, detail, sentences.length === 0 ? undefined : sentences.join(". ")),
    ...(fix !== null && { fixNow: fix }),
    ...(lastingFix !== null && {
      fixForGood: lastingText(lastingFix),
      ...(lastingFix.command !== undefined && { commandForGood: lastingFix.command }),
    }),
  };
}
