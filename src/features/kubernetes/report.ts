import { skippedKeys } from "../../api/etcd.ts";
import type { Status, ClusterReport } from "../../api/status.ts";
import { shortAge } from "../../base/lib/quantity.ts";
import { counted } from "../../base/lib/text.ts";
import { type Finding, findingsOf } from "../../base/model/finding.ts";
import type { CheckedMachine, StatusLine } from "../contract.ts";

export const checks = {
  kubernetes: {
    title: "names of Kubernetes",
    examines:
      "whether the API of the [cluster](kubernetes.md) can be reached, how old its names are if not, and what is left out",
  },
};
const finding = findingsOf(checks);

const PROBLEMS_SHOWN = 3;

export function statusLines({ cluster: report }: Pick<Status, "cluster">): StatusLine[] {
  if (report === null || report === undefined) return [];
  return [
    connectionLine(report),
    ...report.problems
      .slice(0, PROBLEMS_SHOWN)
      .map(({ key, problem }): StatusLine => ({ label: "", text: `skipped ${key}: ${problem}`, colour: "yellow" })),
  ];
}

function connectionLine({ state, reason, staleSeconds, zone, server, ...counts }: ClusterReport): StatusLine {
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

/** Only the running dns11 has the credentials, so its report is what is known. */
export function findings({ status }: Pick<CheckedMachine, "status">): Finding[] {
  const report = status?.cluster ?? undefined;
  if (report === undefined) return [];
  const { state, reason, zone, services, staleSeconds, skipped, refused } = report;
  const remedy = report.remedy ?? "Run `dns11 doctor` again in a moment.";
  const why = reason ?? "the API has not replied yet";
  const connection = {
    current: () => finding("kubernetes", "ok", `names below ${zone} are current, of ${services} services`),
    "last-known": () =>
      finding(
        "kubernetes",
        "warning",
        `names below ${zone} are the last known ones, for ${staleSeconds ?? 0} seconds: ${why}`,
        remedy,
      ),
    unavailable: () => finding("kubernetes", "problem", `queries for names below ${zone} fail: ${why}`, remedy),
  }[state]();
  const correct = "Correct or delete these objects in the cluster.";
  return [
    connection,
    ...(skipped === 0
      ? []
      : [finding("kubernetes", "warning", `${skipped} skipped (${skippedKeys(report)})`, correct)]),
    ...(refused === 0
      ? []
      : [
          finding(
            "kubernetes",
            "warning",
            `${refused} objects are left out: there are too many`,
            "Forward the names to the cluster's own DNS instead: `dns: [host, /cluster.local/10.96.0.10]`.",
          ),
        ]),
  ];
}
