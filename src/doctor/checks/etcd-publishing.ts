/**
 * Etcd publishing check: whether other machines have the containers of this one, and which members of services they do not
 * reach.
 */
import type { EtcdReport, MachinesReport, PublishReport } from "../../api/etcd.ts";
import { type Finding, finding } from "../../base/model/finding.ts";
import { skippedKeys } from "./skipped-keys.ts";

/** Nothing where nothing is published. */
export function publishingFindings({ publishing, machines }: EtcdReport): Finding[] {
  return [
    ...(publishing === null ? [] : [stateFinding(publishing), ...leftOutFindings(publishing)]),
    ...(machines === null ? [] : memberFindings(machines)),
  ];
}

function stateFinding(report: PublishReport): Finding {
  const { state, machine, records, written, pending, reason } = report;
  const remedy = report.remedy ?? "Run `dns11 doctor` again in a moment.";
  if (state === "current") return finding("etcd-publishing", "ok", `${records} containers are published as ${machine}`);
  const why = reason ?? "etcd has not replied yet";
  if (state === "unpublished")
    return finding("etcd-publishing", "problem", `the containers of ${machine} are not published: ${why}`, remedy);
  const detail = `${written} of ${records} containers of ${machine} are published, ${pending} changes are to be written`;
  return finding("etcd-publishing", "warning", `${detail}${reason === null ? "" : `: ${reason}`}`, remedy);
}

function leftOutFindings({ leftOut, addresses, foreign, root }: PublishReport): Finding[] {
  return [
    ...(leftOut === 0
      ? []
      : [
          finding(
            "etcd-publishing",
            "warning",
            `${leftOut} members of services cannot be reached by other machines`,
            addresses.length === 0
              ? "Set etcd.address to an address of this machine that other machines reach."
              : "Publish their ports, or list their networks in etcd.routed-networks; `dns11 status --json` counts them.",
          ),
        ]),
    ...(foreign === 0
      ? []
      : [
          finding(
            "etcd-publishing",
            "warning",
            `${foreign} keys below ${root} are not from this dns11, and stay`,
            "Delete them, and give each machine a user and a role of its own.",
          ),
        ]),
  ];
}

function memberFindings(report: MachinesReport): Finding[] {
  const { skipped, refused } = report;
  return [
    ...(skipped === 0
      ? []
      : [
          finding(
            "etcd-records",
            "warning",
            `${skipped} containers of other machines are skipped (${skippedKeys(report)})`,
            "Run the same release of dns11 on all machines, and delete keys that are not from dns11.",
          ),
        ]),
    ...(refused === 0
      ? []
      : [
          finding(
            "etcd-records",
            "warning",
            `${refused} containers of other machines are left out, because a machine has too many`,
            "Find out which machine writes them: `etcdctl get --prefix --keys-only`.",
          ),
        ]),
  ];
}
