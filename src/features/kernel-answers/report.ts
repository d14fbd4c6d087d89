import { type Finding, finding } from "../../base/model/finding.ts";
import type { CheckedMachine } from "../contract.ts";

const ON_MACHINE = "Use Linux 6.6 or later and the rule backend nft-owner, or set answers: process.";
const IN_CONTAINER =
  "Nothing is lost but speed. Have the container's firewall accept everything on lo, or set answers: process.";

/** Where the process answers although the kernel may. Nothing is lost but speed, so it is a warning only if the settings ask for the kernel. */
export function findings({ status }: Pick<CheckedMachine, "status">): Finding[] {
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
