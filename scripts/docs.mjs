// @ts-check
/**
 * Writes the generated parts of the documents: commands, settings and exit codes from the built program, errors and log
 * messages from the source. Usage: node scripts/docs.mjs [--check], which writes nothing and fails where a part is out of date.
 */
import { writeFileSync } from "node:fs";

import { BREAKAGES } from "../dist/test/docker/breakages/table.js";
import { commandsOnce } from "./docs/commands.mjs";
import { CHECK_MEANINGS, ERROR_REMEDIES, logMeaning } from "./docs/explanations.mjs";
import { changedDocuments, formatted, must } from "./docs/regions.mjs";
import { checkTitles, errorTexts, logTexts } from "./docs/source-texts.mjs";
import { table } from "./docs/table.mjs";

const PROGRAM = "dist/cmd/dns11.js";

const changed = changedDocuments(
  "generated",
  {
    commands: commandsOnce(page("commands.md")),
    "exit-codes": page("exit-codes.md"),
    keys: page("keys.md"),
    errors: errorTable(),
    log: logTable(),
    checks: checkTable(),
    breakages: breakageTable(),
  },
  formatted,
);

const isCheck = process.argv.includes("--check");
for (const [path, text] of changed) {
  if (!isCheck) writeFileSync(path, text);
  console.log(`docs: ${path} ${isCheck ? "is out of date: node scripts/docs.mjs" : "written"}`);
}
process.exitCode = isCheck && changed.size > 0 ? 1 : 0;

/** A page that the program writes about itself. @param {string} name */
function page(name) {
  return must(process.execPath, [PROGRAM, "man", name]);
}

function errorTable() {
  const rows = errorTexts().map(({ code, text, remedy }) => [
    cell(text),
    `\`${code}\``,
    cell(remedy || ERROR_REMEDIES[code] || ""),
  ]);
  return table(["Error", "Code", "What to do"], rows);
}

/** The checks of the doctor: the code of the JSON output, and the title that the terminal shows. */
function checkTable() {
  const rows = checkTitles().map(({ code, title }) => {
    const meaning = CHECK_MEANINGS[code];
    if (meaning === undefined) throw new Error(`no explanation of the check ${code}`);
    return [title, `\`${code}\``, meaning];
  });
  return table(["Printed as", "Code", "Checks"], rows);
}

/** What the tests break and fix, what has one cause and one fix in one row. */
function breakageTable() {
  /** @type {Map<string, [string, string, string]>} */
  const rows = new Map();
  for (const { what, code, fix, change, advice } of BREAKAGES) {
    const parts = [
      ...(fix === undefined ? [] : [`\`${fix}\``]),
      ...(advice === undefined ? [] : [cell(advice)]),
      ...(change === undefined ? [] : [`\`${change}\``]),
    ];
    const fixes = parts.join("<br>") || "correct the name, or its zone";
    const [before] = rows.get(code + fixes) ?? [];
    const happened = before === undefined ? cell(what) : `${before}<br>${cell(what)}`;
    rows.set(code + fixes, [happened, `\`${code}\``, fixes]);
  }
  return table(["What happened", "Cause", "What fixes it (`services`: in the Compose file)"], [...rows.values()]);
}

function logTable() {
  const rows = logTexts().map(({ level, text, fields }) => [
    cell(text),
    level,
    fields.map((field) => `\`${field}\``).join(", "),
    cell(logMeaning(text)),
  ]);
  return table(["Message", "Level", "Fields", "Meaning, and what to do"], rows);
}

/** @param {string} text */
function cell(text) {
  return text.replaceAll("|", "\\|").replaceAll("<", "&lt;").replaceAll("*", "\\*");
}
