/**
 * Summary: the record of a job for its summary page. Names come from containers, and a page of GitHub turns Markdown, HTML, mentions,
 * references and emoji codes in them into something else. So all is in blocks of HTML without an empty line, where nothing is
 * Markdown, with the text of others in code elements, where nothing else is replaced.
 */
import { type Cause, fixesOf, remediesOf } from "../api/causes.ts";
import type { FailureReport } from "../api/failures.ts";
import { namesOf } from "../api/problems.ts";
import { printable } from "../base/lib/text.ts";
import { isLiteralName } from "../base/model/name-pattern.ts";
import type { AskingContainer, JobRecord, RefusedName } from "./tally.ts";

/** The page shows 1 MiB of a step. */
export const SUMMARY_BYTES_MAX = 900_000;
const REST_BYTES = 100;
const FAILURES_SHOWN = 100;
const REFUSALS_SHOWN = 100;
const CONTAINERS_SHOWN = 50;
const NAMES_SHOWN = 50;
/** Longer texts of a cell are cut. */
const CELL_LENGTH_MAX = 500;

/** Reasons for which a rule with the name itself is enough. */
const ALLOWED_BY_RULE = new Set(["not-allowed", "type"]);
/** In a rule an address is one, and reverse names are allowed with the addresses. */
const NOT_A_NAME = /(?:^|\.)\d+$|\.arpa$/;
const NOT_A_PORT = /^\[?([^\]]*?)\]?:\d+\/(?!tcp$|udp$)\w+$/;

type FailedName = ReturnType<typeof namesOf>[number];

/** A name that kept failing: the most that a job wants to know. */
interface FailingName {
  readonly container: string;
  readonly name: string;
  /** Why, or what came of it: of a container that ended right after, the cause may not be known. */
  readonly sentence: string;
}

/** Names of containers that did not resolve in the end. */
export function failingNames(record: JobRecord): FailingName[] {
  return merged(record.failures.filter((each) => isLasting(each))).map(({ containers, names, results, cause }) => ({
    container: containers[0] ?? "",
    name: names[0] ?? "(hidden)",
    sentence: cause?.sentence ?? `it got ${results.join(", ")}`,
  }));
}

export function summaryOf(record: JobRecord): string {
  const lasting = merged(record.failures.filter((each) => isLasting(each)));
  const late = merged(record.failures.filter((each) => each.isContainerName && !isLasting(each)));
  const others = merged(record.failures.filter((each) => !each.isContainerName));
  // What is longest is the least important, and comes last.
  const parts = [
    "## Names in this job\n",
    lasting.length === 0
      ? "No name of a container failed.\n"
      : `${counted(lasting.length, "name")} of containers did not resolve.\n`,
    ...(lasting.length === 0 ? [] : [`${failureTable(lasting)}\n`]),
    ...refusedParts(record),
    ...folded("Failed at first, and resolved later", late),
    ...folded("Other names that failed", others),
    ...askedParts(record.asked),
    ...remarks(record).map((line) => `<p>${line}</p>\n`),
  ];
  let text = "";
  for (const part of parts) {
    if (Buffer.byteLength(text) + Buffer.byteLength(part) > SUMMARY_BYTES_MAX - REST_BYTES)
      return `${text}The rest is too long for this page.\n`;
    text += `${part}\n`;
  }
  return `${text.trimEnd()}\n`;
}

/** Names that policies have refused, and what allows each: the first as a job wants to know them. */
export function refusedNames(record: JobRecord): FailingName[] {
  return mergedRefusals(record.refused.filter(({ isEnforced }) => isEnforced)).map((each) => ({
    container: each.container,
    name: each.name ?? "(hidden)",
    sentence: ruleOf(each) ?? each.because,
  }));
}

function refusedParts({ isPoliced, refused, omittedRefusals }: JobRecord): string[] {
  if (!isPoliced && refused.length === 0) return [];
  const all = mergedRefusals(refused);
  const [enforced, recorded] = [true, false].map((is) => all.filter(({ isEnforced }) => isEnforced === is));
  return [
    ...(all.length === 0 ? ["No policy refused anything.\n"] : []),
    ...refusalTable("refused by policies", enforced ?? []),
    ...refusalTable("that policies would refuse if they were enforced", recorded ?? []),
    ...(omittedRefusals === 0 ? [] : [`<p>${counted(omittedRefusals, "more refusal")} not listed.</p>\n`]),
  ];
}

function refusalTable(what: string, refusals: readonly RefusedName[]): string[] {
  if (refusals.length === 0) return [];
  const rows = refusals.slice(0, REFUSALS_SHOWN).map((each) => {
    const { container, policy, name, count } = each;
    const rule = ruleOf(each);
    const remedy = rule === undefined ? code(each.because) : `<code>allow</code>: ${code(rule)}`;
    return row([code(container), code(policy), code(name ?? "(hidden)"), count === null ? "" : String(count), remedy]);
  });
  const rest = refusals.length - REFUSALS_SHOWN;
  if (rest > 0) rows.push(row([`${counted(rest, "more name")} not shown`]));
  const body = table(["Container", "Policy", "Name", "Queries", "Rule to add, or why"], rows);
  return [`${counted(refusals.length, "name")} ${what}:\n`, `${body}\n`];
}

/** Types of one name, such as A and AAAA, are refused together. Those of a container stand together, the busiest first. */
function mergedRefusals(refused: readonly RefusedName[]): RefusedName[] {
  const groups = new Map<string, RefusedName>();
  const ofContainer = new Map<string, number>();
  for (const each of refused) {
    const { container, name, policy, because, isEnforced, count } = each;
    const key = JSON.stringify([container, name, policy, because, isEnforced]);
    const group = groups.get(key);
    groups.set(key, group === undefined ? each : { ...each, count: (group.count ?? 0) + (count ?? 0) });
    ofContainer.set(container, (ofContainer.get(container) ?? 0) + (count ?? 0));
  }
  const queries = ({ container }: RefusedName): number => ofContainer.get(container) ?? 0;
  return [...groups.values()].toSorted(
    (a, b) =>
      queries(b) - queries(a) ||
      a.container.localeCompare(b.container) ||
      (b.count ?? 0) - (a.count ?? 0) ||
      Number(a.isConnection) - Number(b.isConnection),
  );
}

/** The line of the policy that allows it; undefined where no line does, or none that anybody should add. */
function ruleOf({ name, reason, isConnection, container }: RefusedName): string | undefined {
  if (name === null || !ALLOWED_BY_RULE.has(reason)) return undefined;
  // What has no port, such as ICMP, has a rule for the address.
  if (isConnection) return `- "${name.replace(NOT_A_PORT, "$1")}"  # connected to by ${container}`;
  return isLiteralName(name) && !NOT_A_NAME.test(name) ? `- "${name}"  # asked by ${container}` : undefined;
}

/** It has not resolved since it failed. */
function isLasting({ isContainerName, last, lastSuccess }: FailureReport): boolean {
  return isContainerName && (lastSuccess === null || lastSuccess < last);
}

/** The busiest first. */
function merged(failures: readonly FailureReport[]): FailedName[] {
  return namesOf(failures).toSorted((a, b) => b.count - a.count);
}

function failureTable(failures: readonly FailedName[]): string {
  const rows = failures
    .slice(0, FAILURES_SHOWN)
    .map(({ containers, names: [name = null], results, count, cause }) =>
      row([code(containers[0] ?? ""), code(name ?? "(hidden)"), code(results.join(", ")), String(count), why(cause)]),
    );
  const rest = failures.length - FAILURES_SHOWN;
  return table(
    ["Container", "Name", "Result", "Queries", "Why, and what helps"],
    rest > 0 ? [...rows, row([`${counted(rest, "more name")} not shown`])] : rows,
  );
}

function why(cause: Cause | null): string {
  if (cause === null) return "";
  const remedies = remediesOf(fixesOf(cause)).map(
    ({ label, text }) => `${label === "" ? "" : `${label}: `}${code(text)}`,
  );
  return [code(cause.sentence), ...remedies].join("<br>");
}

function folded(title: string, failures: readonly FailedName[]): string[] {
  if (failures.length === 0) return [];
  return [`${details(`${title} (${failures.length})`, failureTable(failures))}\n`];
}

function askedParts(asked: readonly AskingContainer[]): string[] {
  if (asked.length === 0) return [];
  const shown = asked.toSorted((a, b) => queriesOf(b) - queriesOf(a)).slice(0, CONTAINERS_SHOWN);
  const rows = shown.flatMap((each) => {
    const names = each.names.toSorted((a, b) => b.queries - a.queries);
    const hidden = names.slice(NAMES_SHOWN).reduce((sum, { queries }) => sum + queries, each.others);
    return [
      ...names
        .slice(0, NAMES_SHOWN)
        .map(({ name, queries, failed, answer }) =>
          row([code(each.container), code(name ?? "(hidden)"), String(queries), String(failed), code(answer)]),
        ),
      ...(hidden === 0 ? [] : [row([code(each.container), "other names", String(hidden), "", ""])]),
    ];
  });
  const rest = asked.length - shown.length;
  if (rest > 0) rows.push(row([`${counted(rest, "more container")} not shown`]));
  const body = table(["Container", "Name", "Queries", "Failed", "Last answer"], rows);
  return [`${details(`Who asked what (${counted(asked.length, "container")})`, body)}\n`];
}

/** What the tables lack. */
function remarks({ endedEarly, missed, ofOtherContainers, omittedFailures, problems }: JobRecord): string[] {
  return [
    ...problems.map(({ container, problem }) => `The policy of ${code(container)}: ${code(problem)}`),
    ...(endedEarly === null ? [] : [`The record ends before the job: ${code(endedEarly)}`]),
    ...(missed === 0 ? [] : [`${counted(missed, "query", "queries")} came too fast to be recorded.`]),
    ...(ofOtherContainers === 0
      ? []
      : [`${counted(ofOtherContainers, "query", "queries")} of further containers are not listed.`]),
    ...(omittedFailures === 0 ? [] : [`${counted(omittedFailures, "more failure")} not listed.`]),
  ];
}

function queriesOf({ names, others }: AskingContainer): number {
  return names.reduce((sum, { queries }) => sum + queries, others);
}

function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

function table(heads: readonly string[], rows: readonly string[]): string {
  return `<table>\n<tr>${heads.map((head) => `<th>${head}</th>`).join("")}</tr>\n${rows.join("\n")}\n</table>`;
}

function row(cells: readonly string[]): string {
  return `<tr>${cells.map((cell) => `<td>${cell}</td>`).join("")}</tr>`;
}

function details(title: string, body: string): string {
  return `<details><summary>${title}</summary>\n${body}\n</details>`;
}

/** Text of others. */
function code(text: string): string {
  if (text === "") return "";
  const cut = text.length > CELL_LENGTH_MAX ? `${text.slice(0, CELL_LENGTH_MAX)}...` : text;
  return `<code>${html(printable(cut))}</code>`;
}

function html(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;");
}
