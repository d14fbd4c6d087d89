/**
 * ExplanationText: an explanation for people. The verdict comes first, then why, what to do and how the answer came about; the
 * steps are for those who want to check.
 */
import { type Cause, fixesOf, remediesOf } from "../../src/api/causes.ts";
import { type ExplainedStep, type Explanation, recordsFor } from "../../src/api/names.ts";
import type { FeatureReport } from "../../src/features/contract.ts";
import { printable } from "./printable.ts";
import { type OwnerReports, milliseconds, replyLines, ownerOf, ownerText } from "./reply.ts";
import { table } from "./table.ts";
import type { Colour, Display } from "./terminal.ts";
import { wrapped } from "./wrap.ts";

/** Two blanks, then the longest label and two blanks. */
const LABEL_WIDTH = 10;
const INDENT = " ".repeat(2 + LABEL_WIDTH);
/** The longest one that fits is shown. */
const HINTS = ["  (-v shows each step)", "  (-v: steps)"];
/** Layers that are part of each way, and of interest only where they answer. */
const QUIET_LAYERS: ReadonlySet<string> = new Set(["reverse", "route", "special"]);

export function explanationText(
  explained: Explanation,
  isVerbose: boolean,
  display: Display,
  reports: readonly Pick<FeatureReport, "explanationLines" | "ownerText">[] = [],
): string {
  const { reply } = explained;
  const lines = [
    ...verdictLines(explained, reports, display),
    ...explained.causes.flatMap((cause, index) => causeLines(cause, index === 0 ? "why" : "also", display)),
    ...noteLines(explained, display),
    ...reports
      .flatMap(({ explanationLines }) => explanationLines?.(explained, isVerbose) ?? [])
      .flatMap(({ label, text }) => labelled(label, text, display)),
    ...familyLines(explained, display),
    ...pathLines(explained, isVerbose, display),
  ];
  const text = `${lines.join("\n")}\n`;
  if (!isVerbose) return text;
  const details = [
    `networks: ${explained.networks.map(printable).join(", ") || "none"}\n`,
    reply === null ? "" : replyLines(reply, explained.owners, reports, display),
    explained.steps.length === 0 ? "" : `\n${stepsTable(explained.steps, display)}`,
  ];
  return `${text}\n${details.join("")}`;
}

/** The question and the answer; several addresses or records are listed below. */
function verdictLines(explained: Explanation, reports: OwnerReports, { width, paint }: Display): string[] {
  const { container, question, reply, ms, notQueried, causes, fromFile, fromSearch } = explained;
  const shared = container.sharedWith === undefined ? "" : ` (network namespace of ${container.sharedWith})`;
  const head = printable(`${question.name} (${question.type}) in ${container.name}${shared}: `);
  const verdict = (text: string, colour: Colour): string => {
    const [first = "", ...rest] = wrapped(head + printable(text), width, "  ");
    const begin = first.startsWith(head) ? paint(head, "bold") + paint(first.slice(head.length), colour) : first;
    return [begin, ...rest].join("\n");
  };
  if (fromFile !== undefined) {
    const { path, addresses } = fromFile;
    return [verdict(`${addresses.join(", ") || "no address"}  (${path})`, addresses.length === 0 ? "red" : "yellow")];
  }
  if (fromSearch !== undefined) return [verdict(`${fromSearch.addresses.join(", ")}  (${fromSearch.name})`, "yellow")];
  if (notQueried !== null) return [verdict("not queried", "yellow")];
  if (reply === null) return [verdict(`no reply after ${milliseconds(ms)}`, "red")];
  const alias = reply.answers.findLast(({ type }) => type === "CNAME");
  const aliasText = alias === undefined ? "" : `, an alias of ${alias.data}`;
  if (reply.rcode !== "NOERROR") return [verdict(`${reply.rcode}${aliasText}`, "red")];
  if (recordsFor(reply, question.type).length === 0)
    return [verdict(`no records of type ${question.type} (NODATA)${aliasText}`, "yellow")];
  const isShadowed = causes.some(({ code }) => code === "shadowed");
  const answers = answerTexts(explained, isShadowed, reports);
  const colour = causes.some(({ isBreaking }) => isBreaking) ? "yellow" : "green";
  const [only = "", ...others] = answers;
  if (others.length === 0) return [verdict(only, colour)];
  const isAddress = question.type === "A" || question.type === "AAAA";
  return [
    verdict(`${answers.length} ${isAddress ? "addresses" : "records"}`, colour),
    ...answers.map((text) => `  ${printable(text)}`),
  ];
}

/** Each address with its container; other records as they are. Aliases on the way to an address are left out. */
function answerTexts({ question, reply, owners }: Explanation, isShadowed: boolean, reports: OwnerReports): string[] {
  const answers = reply === null ? [] : recordsFor(reply, question.type);
  return answers.map(({ data }) => {
    const owner = ownerOf(data, owners);
    if (owner !== undefined) return `${data}  ${ownerText(owner, reports)}`;
    return isShadowed ? `${data}  no container of this engine` : data;
  });
}

function causeLines(cause: Cause, label: string, display: Display): string[] {
  // A command is easier to copy from one line.
  const unwrapped = { ...display, width: Number.POSITIVE_INFINITY };
  return [
    ...labelled(label, cause.sentence, display),
    ...remediesOf(fixesOf(cause)).flatMap((each) =>
      each.label === ""
        ? [`${INDENT}${printable(each.text)}`]
        : labelled(each.label, each.text, each.isCommand ? unwrapped : display),
    ),
  ];
}

/** Why the answer is not dns11's own. */
function noteLines({ notServed, notQueried, causes }: Explanation, display: Display): string[] {
  // It is why the name fails, and said already.
  if (notServed === null || causes.some(({ code }) => code === "not-served")) return [];
  const source = notQueried === null ? "the container's own nameserver replied" : `no query was sent: ${notQueried}`;
  return labelled("note", `${notServed}; ${source}`, display);
}

/** That there is no record of the other type of address is usual, and that neither resolves is said already. */
function familyLines({ otherFamily, question, reply, notQueried }: Explanation, display: Display): string[] {
  if (otherFamily === undefined || notQueried !== null) return [];
  const { type, rcode, addresses } = otherFamily;
  const isUsual =
    addresses.length === 0 && (rcode === "NOERROR" || reply === null || recordsFor(reply, question.type).length === 0);
  return isUsual ? [] : labelled(type, addresses.join(", ") || (rcode ?? "no reply"), display);
}

/** The layers that the question passed, and what came out. */
function pathLines(explained: Explanation, isVerbose: boolean, display: Display): string[] {
  const { steps, answeredBy, server, reply, ms, notServed, notQueried } = explained;
  if (notQueried !== null) return [];
  const answering = steps.findIndex(({ isAnswer }) => isAnswer);
  const passed = (answering < 0 ? steps : steps.slice(0, answering + 1)).filter(
    ({ layer, isAnswer }) => isAnswer || !QUIET_LAYERS.has(layer),
  );
  const layers = [...new Set(passed.map(({ layer }) => layer))].map((layer) =>
    layer === "servers" ? (server ?? "servers") : layer,
  );
  const way = notServed === null ? layers : [`${server ?? "nameservers"} (resolv.conf)`];
  const end = reply === null ? "no reply" : reply.rcode;
  const text = `${way.join(" - ") || (answeredBy ?? "dns11")} -> ${end} in ${milliseconds(ms)}`;
  const lines = labelled("path", text, display);
  const room = display.width - INDENT.length - text.length;
  const hint = isVerbose || steps.length === 0 ? undefined : HINTS.find(({ length }) => length <= room);
  return hint === undefined ? lines : [`${lines[0] ?? ""}${display.paint(hint, "dim")}`];
}

function labelled(label: string, text: string, { width, paint }: Display): string[] {
  const [first = "", ...rest] = wrapped(`  ${label.padEnd(LABEL_WIDTH)}${printable(text)}`, width, INDENT);
  const shown = paint(label, "bold");
  return [`  ${shown}${first.slice(2 + label.length)}`, ...rest];
}

function stepsTable(steps: readonly ExplainedStep[], display: Display): string {
  const rows = steps.flatMap(({ layer, isAnswer, why, events = [] }) => [
    [layer, isAnswer ? "yes" : "no", why],
    ...events.map(({ atMs, server, what }) => [
      "",
      "",
      `${atMs.toFixed(1).padStart(8)} ms  ${server === undefined ? "" : `${server}: `}${what}`,
    ]),
  ]);
  return table(["STEP", "ANSWERED", "WHY"], rows, display);
}
