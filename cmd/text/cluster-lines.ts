/**
 * The lines of `dns11 status` about a Kubernetes cluster: the connection, and the objects that are left out.
 */
import type { ClusterReport } from "../../src/api/cluster.ts";
import { shortAge } from "../../src/base/lib/age.ts";
import { counted } from "../../src/base/lib/counted.ts";
import type { Line } from "./lines.ts";

const PROBLEMS_SHOWN = 3;

/** None where no cluster is used. */
export function clusterLines(report: ClusterReport | null | undefined): Line[] {
  if (report === null || report === undefined) return [];
  return [
    connectionLine(report),
    ...report.problems
      .slice(0, PROBLEMS_SHOWN)
      .map(({ key, problem }): Line => ({ label: "", text: `skipped ${key}: ${problem}`, colour: "yellow" })),
  ];
}

function connectionLine({ state, reason, staleSeconds, zone, server, ...counts }: ClusterReport): Line {
  const { services, endpoints, skipped, refused } = counts;
  const left = [...(skipped === 0 ? [] : [`${skipped} skipped`]), ...(refused === 0 ? [] : [`${refused} too many`])];
  const what = [counted(services, "service"), counted(endpoints, "endpoint"), ...left].join(", ");
  const since = staleSeconds === null ? "" : ` for ${shortAge(staleSeconds * 1000)}`;
  const label = "kubernetes";
  if (state === "current") return { label, text: `${what} for ${zone}, from ${server ?? ""}` };
  const why = reason ?? "connecting";
  return state === "last-known"
    ? { label, text: `${what} for ${zone}, last known${since}: ${why}`, colour: "yellow" }
    : { label, text: `queries for ${zone} fail: ${why}`, colour: "red" };
}
