/**
 * Cluster check: whether the names of a Kubernetes cluster are current, and which of its objects are left out. Only the running
 * dns11 has the credentials, so its report is what is known.
 */
import type { Status } from "../../api/status.ts";
import { type Finding, finding } from "../../base/model/finding.ts";
import { skippedKeys } from "./skipped-keys.ts";

/** Finds nothing where no cluster is used, or dns11 does not run. */
export function clusterFindings(status: Pick<Status, "cluster"> | undefined): Finding[] {
  const report = status?.cluster;
  if (report === null || report === undefined) return [];
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
