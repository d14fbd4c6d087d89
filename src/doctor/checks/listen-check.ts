/**
 * Listen check: whether dns11 answers others than containers at the addresses of the host that the settings name.
 */
import type { Status } from "../../api/status.ts";
import { type Finding, finding } from "../../base/model/finding.ts";

const CODE = "listen";

export function listenFindings(status: Pick<Status, "listen"> | undefined): Finding[] {
  return (status?.listen?.entries ?? []).flatMap(({ name, addresses, allow, problem, lost }) => {
    const served = addresses.filter(({ state }) => state === "serving").map(({ address }) => address);
    const works = `"${name}" is answered at ${served.join(" and ")}, for ${allow.join(", ")}`;
    const findings = addresses.flatMap(({ address, state, reason = "" }): Finding[] => {
      if (state === "serving") return [];
      if (state === "opening")
        return [finding(CODE, "warning", `${address} is not ready yet`, "Run `dns11 doctor` again in a moment.")];
      if (state === "failed") return [finding(CODE, "problem", reason, "The reason says what to change.")];
      const remedy =
        "Give the host the address, or correct it in the setting listen. dns11 looks for it every 10 seconds.";
      return [finding(CODE, "problem", reason, remedy)];
    });
    if (served.length === 0) return findings;
    if (problem !== undefined) {
      const remedy = "Correct the view, or start a container on that network.";
      return [...findings, finding(CODE, "warning", `${works}; ${problem}`, remedy)];
    }
    if (lost > 0) {
      const remedy = "dns11 did not read them in time: the machine is too busy, or somebody sends too many.";
      return [...findings, finding(CODE, "warning", `${works}; ${lost} queries were lost`, remedy)];
    }
    return [...findings, finding(CODE, "ok", works)];
  });
}
