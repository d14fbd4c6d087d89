import type { MdnsReport, Status } from "../../api/status.ts";
import { type Finding, findingsOf } from "../../base/model/finding.ts";
import type { CheckedMachine, StatusLine } from "../contract.ts";

export const checks = {
  mdns: {
    title: "names of the local network",
    examines: "whether [names of the local network](lan-names.md) resolve, and if not, what to install or set",
  },
};
const finding = findingsOf(checks);

export function statusLines({ mdns }: Pick<Status, "mdns">): StatusLine[] {
  if (mdns === null || mdns === undefined) return [];
  const { problem } = mdns;
  return problem === undefined
    ? [{ label: "mdns", text: asksText(mdns) }]
    : [{ label: "mdns", text: `names in local fail: ${problem}`, colour: "red" }];
}

/** Nothing where it is off. */
export function findings({ status }: Pick<CheckedMachine, "status">): Finding[] {
  const mdns = status?.mdns ?? undefined;
  if (mdns === undefined) return [];
  const { problem, remedy } = mdns;
  return problem === undefined
    ? [finding("mdns", "ok", asksText(mdns))]
    : [finding("mdns", "problem", `names in local fail: ${problem}`, remedy)];
}

function asksText({ by }: MdnsReport): string {
  return `names in local are asked from ${by ?? "nobody"}`;
}
