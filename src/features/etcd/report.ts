import {
  type EtcdReport,
  type MachinesReport,
  type PublishReport,
  skippedKeys,
  DELIBERATE_REASONS,
  type PublishedReport,
} from "../../api/etcd.ts";
import type { Explanation } from "../../api/names.ts";
import type { ContainerStatus, Status } from "../../api/status.ts";
import { shortAge } from "../../base/lib/quantity.ts";
import { counted } from "../../base/lib/text.ts";
import { type Finding, findingsOf } from "../../base/model/finding.ts";
import type { CheckedContainer, CheckedMachine, ContainerColumn, StatusLine } from "../contract.ts";

export const checks = {
  etcd: {
    title: "etcd",
    examines: "whether [etcd](etcd.md) can be reached, how old its names are if not, and what it warns of",
  },
  "etcd-records": {
    title: "records in etcd",
    examines: "records of etcd that are left out: those that cannot be read, and those beyond the limit",
  },
  "etcd-publishing": {
    title: "publishing to etcd",
    examines:
      "whether the containers of this machine are [published](etcd.md#publishing) in etcd, and which of them other machines cannot reach",
  },
};
const finding = findingsOf(checks);

const PROBLEMS_SHOWN = 3;
const SHOWN = 3;
const CODE = "etcd-publishing";
const ALARM_REMEDIES: Readonly<Record<string, string>> = {
  NOSPACE:
    "Compact and defragment etcd, then clear the alarm (`etcdctl alarm disarm`): it accepts no writes until then.",
  CORRUPT: "A member has other data than the others: replace it.",
};
/** Reasons in a few words, by their code. */
const SHORT: Readonly<Record<string, string>> = {
  PUBLISH_NO_PORT: "no published port",
  PUBLISH_OTHER_ADDRESS: "other address",
  PUBLISH_NO_ADDRESS: "no address",
  PUBLISH_UNNAMED_PORTS: "unnamed ports",
  PUBLISH_TOO_MANY: "too many",
  PUBLISH_INVALID: "invalid label",
  ETCD_MACHINE_TAKEN: "name taken",
  ETCD_PERMISSION: "no permission",
  ETCD_NO_SPACE: "etcd is full",
  ETCD_LEASE_LOST: "lease ended",
  ETCD_UNREACHABLE: "etcd is away",
  ETCD_CERTIFICATE: "wrong certificate",
  ETCD_CREDENTIALS: "wrong password",
  ETCD_TOKEN: "no user",
};
const NO_SERVICE = "PUBLISH_NO_SERVICE";

/** The connection, the records that are left out, and what is published. */
export function statusLines({ etcd: report }: Pick<Status, "etcd">): StatusLine[] {
  if (report === null || report === undefined) return [];
  const { alarms, problems, machines, publishing } = report;
  return [
    connectionLine(report),
    ...alarms.map((alarm): StatusLine => ({ label: "", text: `alarm ${alarm}`, colour: "red" })),
    ...[...problems, ...(machines?.problems ?? [])]
      .slice(0, PROBLEMS_SHOWN)
      .map(({ key, problem }): StatusLine => ({ label: "", text: `skipped ${key}: ${problem}`, colour: "yellow" })),
    ...(publishing === null ? [] : [publishedLine(publishing)]),
  ];
}

function connectionLine(report: EtcdReport): StatusLine {
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

function publishedLine({
  state,
  machine,
  addresses,
  records,
  written,
  pending,
  leftOut,
  reason,
}: PublishReport): StatusLine {
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

export function columns(containers: readonly ContainerStatus[]): ContainerColumn[] {
  if (containers.every(({ published }) => published === undefined)) return [];
  return [
    { title: "PUBLISHED", min: 14, drop: 5, cell: publishedCell },
    {
      title: "PUBLISHED AS",
      isForWide: true,
      min: 20,
      drop: 10,
      cell: ({ published }) => published?.names.at(-1) ?? "-",
    },
  ];
}

/** What other machines know of the containers; that all is well is a detail, and so are names that are no service's. */
export function explanationLines({ published = [], question }: Explanation, isVerbose: boolean): StatusLine[] {
  const name = question.name.toLowerCase().replace(/\.$/, "");
  return published
    .filter(({ state, zone }) => isVerbose || (state !== "published" && name.endsWith(`.${zone}`)))
    .map((each) => ({ label: "etcd", text: `${each.container} ${publishedSentence(each)}` }));
}

function publishedCell({ published: report }: ContainerStatus): ReturnType<ContainerColumn["cell"]> {
  if (report === undefined || report.code === NO_SERVICE) return "-";
  const { state, code, addresses, ports } = report;
  if (state === "published") return [addresses.join(","), ...ports].join(" ");
  if (state === "pending") return { text: "pending", colour: "yellow" };
  const colour = DELIBERATE_REASONS.has(code) ? "dim" : "red";
  return { text: `no (${SHORT[code ?? ""] ?? "see dns11 doctor"})`, colour };
}

/** Begins after the name of the container. */
function publishedSentence({ state, names, addresses, reason, remedy }: PublishedReport): string {
  if (state === "published") return `is published as ${names.at(-1) ?? ""} at ${addresses.join(" and ")}`;
  if (state === "pending") return "is not published yet: it is being written to etcd";
  return `is not published: ${(reason ?? "etcd has not replied yet").replace(/\.$/, "")}. ${remedy ?? ""}`.trimEnd();
}

/** Only the running dns11 has the credentials, so its report is what is known. */
export function findings({ status }: Pick<CheckedMachine, "status">): Finding[] {
  const report = status?.etcd ?? undefined;
  if (report === undefined) return [];
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

type Containers = readonly Pick<ContainerStatus, "name" | "published">[];

/** Finds nothing where nothing is published. */
function publishingFindings({ publishing, machines }: EtcdReport, containers: Containers): Finding[] {
  return [
    ...(publishing === null
      ? []
      : [stateFinding(publishing), ...leftOutFindings(containers), ...foreignFindings(publishing)]),
    ...(machines === null ? [] : machineFindings(machines)),
  ];
}

function stateFinding(report: PublishReport): Finding {
  const { state, machine, records, written, pending, reason } = report;
  const remedy = report.remedy ?? "Run `dns11 doctor` again in a moment.";
  if (state === "current") return finding(CODE, "ok", `${records} containers are published as ${machine}`);
  const why = reason ?? "etcd has not replied yet";
  if (state === "unpublished")
    return finding(CODE, "problem", `the containers of ${machine} are not published: ${why}`, remedy);
  const detail = `${written} of ${records} containers of ${machine} are published, ${pending} changes are to be written`;
  return finding(CODE, "warning", `${detail}${reason === null ? "" : `: ${reason}`}`, remedy);
}

/** What the container is published as, or why it is not; nothing if that is a matter of the machine or of no service. */
export function containerFindings({ status }: Pick<CheckedContainer, "status">): Finding[] {
  const report = status?.published;
  if (report === undefined) return [];
  const { state, key, names, addresses } = report;
  if (state === "published")
    return [finding(CODE, "ok", `published as ${names.join(" and ")} at ${addresses.join(" and ")}, key ${key ?? ""}`)];
  if (!isLeftOut(report)) return [];
  return [leftOutFinding(report, report.reason ?? "")];
}

/** One finding for each reason. */
function leftOutFindings(containers: Containers): Finding[] {
  const byReason = new Map<string, { readonly report: PublishedReport; readonly names: string[] }>();
  for (const { name, published } of containers) {
    if (published === undefined || !isLeftOut(published)) continue;
    const reason = published.reason ?? "";
    const same = byReason.get(reason) ?? { report: published, names: [] };
    byReason.set(reason, same);
    same.names.push(name);
  }
  return [...byReason].map(([reason, { report, names }]) => {
    const shown = names.slice(0, SHOWN).join(", ");
    const more = names.length > SHOWN ? ` and ${names.length - SHOWN} more` : "";
    return leftOutFinding(report, `${shown}${more}: ${reason}`);
  });
}

/** A container is left out for what it is, not for what becomes of the whole machine. */
function isLeftOut({ state, code }: PublishedReport): boolean {
  return state === "unpublished" && code?.startsWith("PUBLISH_") === true && code !== "PUBLISH_NO_SERVICE";
}

function leftOutFinding({ code, remedy }: PublishedReport, what: string): Finding {
  const detail = `not published for other machines: ${what}`;
  return DELIBERATE_REASONS.has(code)
    ? finding(CODE, "ok", detail)
    : finding(CODE, "warning", detail, remedy ?? undefined);
}

function foreignFindings({ foreign, root }: PublishReport): Finding[] {
  if (foreign === 0) return [];
  return [
    finding(
      CODE,
      "warning",
      `${foreign} keys below ${root} are not from this dns11, and stay`,
      "Delete them, and give each machine a user and a role of its own.",
    ),
  ];
}

function machineFindings(report: MachinesReport): Finding[] {
  const { skipped, refused, cut } = report;
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
    ...(refused === 0 && cut.length === 0
      ? []
      : [
          finding(
            "etcd-records",
            "warning",
            cut.length === 0
              ? `${refused} containers of other machines are left out, because a machine has too many`
              : `not all keys of the machine ${cut.slice(0, SHOWN).join(", ")} are read, because it has too many`,
            "Find out which machine writes them: `etcdctl get --prefix --keys-only`.",
          ),
        ]),
  ];
}
