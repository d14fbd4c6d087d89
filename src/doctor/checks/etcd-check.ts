/**
 * Etcd check: whether the names of etcd are current, and which of its records are left out. Only the running dns11 has
 * the credentials, so its report is what is known.
 */
import type { EtcdReport } from "../../api/etcd.ts";
import type { Status } from "../../api/status.ts";
import { type Finding, finding } from "../../base/model/finding.ts";
import { publishingFindings } from "./etcd-publishing.ts";
import { skippedKeys } from "../../api/skipped-keys.ts";

const ALARM_REMEDIES: Readonly<Record<string, string>> = {
  NOSPACE:
    "Compact and defragment etcd, then clear the alarm (`etcdctl alarm disarm`): it accepts no writes until then.",
  CORRUPT: "A member has other data than the others: replace it.",
};
/** Finds nothing where etcd is not used, or dns11 does not run. */
export function etcdFindings(status: Pick<Status, "etcd" | "containers"> | undefined): Finding[] {
  const report = status?.etcd;
  if (report === null || report === undefined) return [];
  return [
    connectionFinding(report),
    ...memberFindings(report),
    ...alarmFindings(report),
    ...recordFindings(report),
    ...publishingFindings(report, status?.containers ?? []),
  ];
}

function connectionFinding(report: EtcdReport): Finding {
  const { state, zones, records, staleSeconds, reason } = report;
  const remedy = report.remedy ?? "Run `dns11 doctor` again in a moment.";
  const { machines } = report;
  const below = zones.length === 0 ? "containers of other machines" : `names below ${zones.join(", ")}`;
  const of =
    zones.length === 0 && machines !== null
      ? `${machines.members} of ${machines.machines} machines`
      : `${records} records`;
  if (state === "current") return finding("etcd", "ok", `${below} are current, ${of}`);
  if (state === "unavailable") {
    return finding("etcd", "problem", `queries for ${below} fail: ${reason ?? "etcd has not replied yet"}`, remedy);
  }
  const detail = `${below} are the last known ones, for ${staleSeconds ?? 0} seconds: ${reason ?? "connecting again"}`;
  return finding("etcd", "warning", detail, remedy);
}

/** Members that failed, while others work. */
function memberFindings({ state, members }: EtcdReport): Finding[] {
  if (state !== "current") return [];
  return members.flatMap(({ isCurrent, reason }) =>
    isCurrent || reason === null
      ? []
      : [
          finding(
            "etcd",
            "warning",
            `another member is used: ${reason}`,
            "Check that member: `etcdctl endpoint status`.",
          ),
        ],
  );
}

function alarmFindings({ alarms }: EtcdReport): Finding[] {
  return alarms.map((alarm) =>
    finding("etcd", "warning", `etcd has the alarm ${alarm}`, ALARM_REMEDIES[alarm] ?? "Run `etcdctl alarm list`."),
  );
}

function recordFindings(report: EtcdReport): Finding[] {
  const { skipped, refused, isCut, records } = report;
  return [
    ...(skipped === 0
      ? []
      : [
          finding(
            "etcd-records",
            "warning",
            `${skipped} skipped (${skippedKeys(report)})`,
            "Correct or delete these keys in etcd.",
          ),
        ]),
    ...(refused === 0 && !isCut
      ? []
      : [
          finding(
            "etcd-records",
            "warning",
            `${isCut ? "more" : refused} are left out, because ${records} and ${skipped} that are skipped are the most that are read`,
            "Choose fewer zones or a longer prefix (etcd.zones, etcd.prefix).",
          ),
        ]),
  ];
}
