/**
 * The lines of `dns11 status` about etcd: the connection, the records that are left out, and what is published there.
 */
import type { EtcdReport, MachinesReport, PublishReport } from "../../src/api/etcd.ts";
import { counted } from "../../src/base/lib/counted.ts";
import type { Line } from "./lines.ts";
import { shortAge } from "../../src/base/lib/age.ts";

const PROBLEMS_SHOWN = 3;

/** None where etcd is not used. */
export function etcdLines(report: EtcdReport | null | undefined): Line[] {
  if (report === null || report === undefined) return [];
  const { alarms, problems, machines, publishing } = report;
  return [
    connectionLine(report),
    ...alarms.map((alarm): Line => ({ label: "", text: `alarm ${alarm}`, colour: "red" })),
    ...[...problems, ...(machines?.problems ?? [])]
      .slice(0, PROBLEMS_SHOWN)
      .map(({ key, problem }): Line => ({ label: "", text: `skipped ${key}: ${problem}`, colour: "yellow" })),
    ...(publishing === null ? [] : [publishedLine(publishing)]),
  ];
}

function connectionLine(report: EtcdReport): Line {
  const { state, reason, staleSeconds, zones, machines } = report;
  const what = [
    ...(zones.length === 0 ? [] : [recordsText(report)]),
    ...(machines === null ? [] : [machinesText(machines)]),
  ];
  const since = staleSeconds === null ? "" : ` for ${shortAge(staleSeconds * 1000)}`;
  const current = report.members.find((each) => each.isCurrent)?.endpoint ?? "";
  const label = "etcd";
  if (state === "current") return { label, text: `${what.join("; ")}, from ${current}` };
  if (state === "last-known")
    return { label, text: `${what.join("; ")}, last known${since}: ${reason ?? "connecting"}`, colour: "yellow" };
  const failing =
    zones.length === 0 ? "containers of other machines are not known" : `queries for ${zones.join(", ")} fail`;
  return { label, text: `${failing}: ${reason ?? "connecting"}`, colour: "red" };
}

function recordsText({ records, zones, skipped, refused, isCut }: EtcdReport): string {
  const more = isCut ? ["more that are not read"] : [];
  return `${[counted(records, "record"), ...leftOutText(skipped, refused), ...more].join(", ")} for ${zones.join(", ")}`;
}

function machinesText({ machines, members, skipped, refused, cut }: MachinesReport): string {
  const what = `${counted(members, "container")} of ${counted(machines, "other machine")}`;
  const more = cut.length === 0 ? [] : [`not all keys of ${cut.join(", ")} are read`];
  return [what, ...leftOutText(skipped, refused), ...more].join(", ");
}

function leftOutText(skipped: number, refused: number): string[] {
  return [...(skipped === 0 ? [] : [`${skipped} skipped`]), ...(refused === 0 ? [] : [`${refused} too many`])];
}

function publishedLine({ state, machine, addresses, records, written, pending, leftOut, reason }: PublishReport): Line {
  const at = addresses.length === 0 ? "" : ` at ${addresses.join(" and ")}`;
  const left = leftOut === 0 ? "" : `, ${leftOut} that others do not reach`;
  const behind = state === "current" ? "" : `, ${written} written, ${pending} to be written`;
  const why = reason === null ? "" : `: ${reason}`;
  return {
    label: "published",
    text: `${counted(records, "container")} as ${machine}${at}${left}${behind}${why}`,
    colour: state === "current" ? undefined : reason === null ? "yellow" : "red",
  };
}
