/**
 * KernelAnswersCheck: where the process answers although the kernel may. Nothing is lost but speed, so it is a warning only
 * if the settings ask for the kernel.
 */
import type { Status } from "../../api/status.ts";
import { type Finding, finding } from "../../base/model/finding.ts";

const ON_MACHINE = "Use Linux 6.6 or later and the rule backend nft-owner, or set answers: process.";
const IN_CONTAINER =
  "Nothing is lost but speed. Have the container's firewall accept everything on lo, or set answers: process.";

export function kernelAnswersFindings(status: Status | undefined): Finding[] {
  if (status?.answers === undefined) return [];
  const { by, reason = "" } = status.answers;
  const found = (detail: string, remedy: string): Finding =>
    status.settings["answers"]?.value === "kernel"
      ? finding("kernel", "warning", detail, remedy)
      : finding("kernel", "ok", detail);
  if (by === "process") {
    const remedy = `Nothing is lost but speed. ${status.answers.remedy ?? ON_MACHINE}`;
    return [found(`cannot answer queries, so the process does: ${reason}`, remedy)];
  }
  return status.containers.flatMap(({ name, answers }) =>
    answers?.by === "process" && answers.isMeant !== true && answers.isPending !== true
      ? [found(`does not answer in ${name}: ${answers.reason ?? ""}`, IN_CONTAINER)]
      : [],
  );
}
