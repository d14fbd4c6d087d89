// @ts-check
/**
 * Writes the generated parts of the documents: commands, settings and exit codes from the built program, errors and log
 * messages from the source. Usage: node scripts/docs.mjs [--check], which writes nothing and fails where a part is out of date.
 */
import { writeFileSync } from "node:fs";

import { loadChecks } from "../dist/src/features/load.js";
import { BREAKAGES } from "../dist/test/docker/breakages/table.js";
import { commandsOnce } from "./docs/commands.mjs";
import { logMeaning, remedyOf } from "./docs/explanations.mjs";
import { changedDocuments, formatted, must } from "./docs/regions.mjs";
import { errorTexts, logTexts } from "./docs/source-texts.mjs";
import { table } from "./docs/table.mjs";

const PROGRAM = "dist/cmd/dns11.js";

const changed = changedDocuments(
  "generated",
  {
    commands: commandsOnce(page("commands.md")),
    "exit-codes": page("exit-codes.md"),
    keys: page("keys.md"),
    errors: errorList().join("\n"),
    "log-errors": logList("error").join("\n"),
    "log-warnings": logList("warn").join("\n"),
    checks: (await checkList()).join("\n"),
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

/** The errors by code, with what to do where the program does not print it. */
function errorList() {
  /** @type {Map<string, { texts: string[], isSilent: boolean }>} */
  const codes = new Map();
  for (const { code, text, remedy } of errorTexts()) {
    const known = codes.get(code) ?? { texts: [], isSilent: false };
    codes.set(code, { texts: [...known.texts, text], isSilent: known.isSilent || remedy === "" });
  }
  return [...codes].map(([code, { texts, isSilent }]) => {
    const remedy = remedyOf(code);
    if (isSilent && remedy === undefined) throw new Error(`nothing says what to do about ${code}`);
    return item(`\`${code}\``, texts.map(cell).join("; ") + (isSilent ? `. _What to do:_ ${cell(remedy ?? "")}` : ""));
  });
}

/** The checks of the doctor: the title that the terminal shows, and the code of the JSON output. */
async function checkList() {
  return Object.entries(await loadChecks()).map(([code, { title, examines }]) =>
    item(`**${title}** (\`${code}\`)`, examines),
  );
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
    const otherwise =
      code === "upstream-slow" ? "another server, or wait for those of the zone" : "correct the name, or its zone";
    const fixes = parts.join("<br>") || otherwise;
    const [before] = rows.get(code + fixes) ?? [];
    const happened = before === undefined ? cell(what) : `${before}<br>${cell(what)}`;
    rows.set(code + fixes, [happened, `\`${code}\``, fixes]);
  }
  return table(["What happened", "Cause", "What fixes it (`services`: in the Compose file)"], [...rows.values()]);
}

/** @param {string} wanted */
function logList(wanted) {
  return logTexts()
    .filter(({ level }) => level === wanted)
    .map(({ text, fields }) => {
      const named = fields.map((field) => `\`${field}\``).join(", ");
      return item(`**${cell(text)}**${named === "" ? "" : ` (${named})`}`, cell(logMeaning(text)));
    });
}

/** @param {string} what @param {string} meaning */
function item(what, meaning) {
  return `- ${what}: ${meaning}`;
}

/** @param {string} text */
function cell(text) {
  return text.replaceAll("|", "\\|").replaceAll("<", "&lt;").replaceAll("*", "\\*");
}
