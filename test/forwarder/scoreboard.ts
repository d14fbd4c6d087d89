import { GROUPS, SCENARIOS } from "./list.ts";
import type { Scenario, Unsuitable } from "./scenario.ts";

export const DOCUMENT = "docs/internals/scenarios.md";

/** The page of scenarios. Those that fail have no row: nothing is on main that fails. */
export function scoreboard(): string {
  const different = SCENARIOS.filter(({ differs }) => differs !== undefined).length;
  const unsuitable = GROUPS.reduce((count, group) => count + group.unsuitable.length, 0);
  return [
    "# Scenarios",
    "",
    "What tests of other resolvers and the standards expect of a forwarder, asked of dns11 from outside: a client in a container asks, servers say",
    "what the scenario has them say, and the clock is moved. The facts are those of unbound's and Deckard's scenarios that concern a forwarder, of",
    "RFC 8906 and of dns-violations (DVE); words, code and packets are our own. `test/forwarder` has them.",
    "",
    `${SCENARIOS.length} apply: ${SCENARIOS.length - different} pass, ${different} differ by design, 0 fail. ${unsuitable} rows do not apply.`,
    ...GROUPS.flatMap((group) => section(group)),
    "",
  ].join("\n");
}

function section({ title, scenarios, unsuitable }: (typeof GROUPS)[number]): string[] {
  const rows = [...scenarios.map(scenarioRow), ...unsuitable.map(unsuitableRow)];
  return ["", `## ${title}`, "", ...table(["From", "What holds", "Result"], rows)];
}

function scenarioRow({ from, title, differs }: Scenario): string[] {
  return [from, title, differs === undefined ? "passes" : `differs: ${differs}`];
}

function unsuitableRow({ from, why }: Unsuitable): string[] {
  return [from, "", `does not apply: ${why}`];
}

/** As the formatter of documents writes it. */
function table(head: readonly string[], rows: readonly string[][]): string[] {
  const all = [head, ...rows.map((row) => row.map((cell) => cell.replaceAll("*", "\\*")))];
  const widths = head.map((_, at) => Math.max(...all.map((row) => row[at]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    `| ${row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(" | ")} |`;
  const [first = [], ...others] = all;
  return [line(first), line(widths.map((width) => "-".repeat(width))), ...others.map(line)];
}
