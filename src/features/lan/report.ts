import type { Status } from "../../api/status.ts";
import { type Finding, findingsOf } from "../../base/model/finding.ts";
import type { CheckedMachine, StatusLine } from "../contract.ts";

export const checks = {
  listen: {
    title: "other machines",
    examines:
      "whether dns11 answers [other machines](other-machines.md) at the addresses of the setting `listen`, and if not, why",
  },
};
const finding = findingsOf(checks);

const CODE = "listen";

/** The addresses at which others than containers may ask, a line for each entry. */
export function statusLines({ listen }: Pick<Status, "listen">): StatusLine[] {
  return (listen?.entries ?? []).map(({ name, addresses, allow, view, forward, problem }): StatusLine => {
    const serving = addresses.filter(({ state }) => state === "serving").map(({ address }) => address);
    const others = addresses.flatMap(({ state, reason }) => (state === "serving" ? [] : [reason ?? "not ready yet"]));
    const what = `${view}${forward ? ", forwards" : ""}, for ${allow.join(", ")}`;
    const parts = [
      ...(serving.length === 0 ? [] : [`${serving.join(" and ")}: ${what}`]),
      ...others,
      ...(problem === undefined ? [] : [problem]),
    ];
    const isFine = others.length === 0 && problem === undefined;
    const colour = isFine ? undefined : serving.length === 0 ? "red" : "yellow";
    return { label: `listen ${name}`, text: parts.join("; "), colour };
  });
}

/** Whether dns11 answers there. */
export function findings({ status }: Pick<CheckedMachine, "status">): Finding[] {
  return (status?.listen?.entries ?? []).flatMap(({ name, addresses, allow, problem, lost }) => {
    const served = addresses.filter(({ state }) => state === "serving").map(({ address }) => address);
    const works = `"${name}" is answered at ${served.join(" and ")}, for ${allow.join(", ")}`;
    const others = addresses.flatMap(({ address, state, reason = "" }): Finding[] => {
      if (state === "serving") return [];
      if (state === "opening")
        return [finding(CODE, "warning", `${address} is not ready yet`, "Run `dns11 doctor` again in a moment.")];
      if (state === "failed") return [finding(CODE, "problem", reason, "The reason says what to change.")];
      const remedy =
        "Give the host the address, or correct it in the setting listen. dns11 looks for it every 10 seconds.";
      return [finding(CODE, "problem", reason, remedy)];
    });
    if (served.length === 0) return others;
    if (problem !== undefined) {
      const remedy = "Correct the view, or start a container on that network.";
      return [...others, finding(CODE, "warning", `${works}; ${problem}`, remedy)];
    }
    if (lost > 0) {
      const remedy = "dns11 did not read them in time: the machine is too busy, or somebody sends too many.";
      return [...others, finding(CODE, "warning", `${works}; ${lost} queries were lost`, remedy)];
    }
    return [...others, finding(CODE, "ok", works)];
  });
}
