/**
 * Etcd publishing check: whether other machines have the containers of this one, and which members of services they do not
 * reach, and why.
 */
import type { EtcdReport, MachinesReport, PublishReport } from "../../api/etcd.ts";
import { DELIBERATE_REASONS, type PublishedReport } from "../../api/published.ts";
import type { ContainerStatus } from "../../api/status.ts";
import { type Finding, finding } from "../../base/model/finding.ts";
import { skippedKeys } from "../../api/skipped-keys.ts";

const SHOWN = 3;
const CODE = "etcd-publishing";

type Containers = readonly Pick<ContainerStatus, "name" | "published">[];

/** Finds nothing where nothing is published. */
export function publishingFindings({ publishing, machines }: EtcdReport, containers: Containers): Finding[] {
  return [
    ...(publishing === null
      ? []
      : [stateFinding(publishing), ...leftOutFindings(containers), ...foreignFindings(publishing)]),
    ...(machines === null ? [] : memberFindings(machines)),
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

/** What one container is published as, or why it is not; nothing if that is a matter of the machine or of no service. */
export function publishedFindings(report: PublishedReport | undefined): Finding[] {
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

function memberFindings(report: MachinesReport): Finding[] {
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
