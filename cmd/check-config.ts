/**
 * dns11 check-config: validates a settings file and prints the effective settings. It needs neither root nor an engine.
 */
import type { Command } from "commander";

import type { DeclaredName } from "../src/base/model/declared-name.ts";
import type { SettingOrigins } from "../src/base/model/setting-origins.ts";
import { BadSettings } from "../src/config/bad-settings.ts";
import { DeclaredSet } from "../src/config/records/declared-set.ts";
import { mergeSettings } from "../src/config/merge-settings.ts";
import { addJsonOption } from "./options/control-options.ts";
import { policyWarnings } from "../src/policy/model/policy-warnings.ts";
import { jsonLine, printableLines } from "./text/printable.ts";
import { table } from "./text/table.ts";

export function addCheckConfig(program: Command): void {
  const command = program
    .command("check-config")
    .summary("Validate a settings file")
    .description("Validate a settings file: print the effective settings, or every mistake with its line")
    .argument("<file>", "the settings file");
  addJsonOption(command).action(async (path: string, { json }: { readonly json?: boolean }) => {
    const { readSettingsFile } = await import("../src/config/file/settings-file.ts");
    const { origins, records, recordsDir, policies } = mergeSettings([await readSettingsFile(path)]);
    if (recordsDir !== undefined) await checkRecords(recordsDir, records);
    const warnings = policyWarnings(policies);
    const isNoted = warnings.length > 0;
    process.stdout.write(
      json === true
        ? jsonLine({ file: path, settings: origins, ...(isNoted && { warnings }) })
        : `${path} is valid\n${isNoted ? `\n${printableLines(warnings)}` : ""}\n${list(origins)}`,
    );
  });
}

/** Throws a Fault that lists the mistakes in the files of the records folder. */
async function checkRecords(folder: string, records: readonly DeclaredName[]): Promise<void> {
  const { readRecordsFolder } = await import("../src/config/file/records-files.ts");
  const all = new DeclaredSet();
  all.add(records);
  const files = await readRecordsFolder(folder);
  const found = files.flatMap(({ names, mistakes }) => (names === undefined ? mistakes : all.add(names)));
  if (found.length > 0) throw new BadSettings(found);
}

function list(origins: SettingOrigins): string {
  const rows = Object.entries(origins).map(([key, { value, source }]) => [key, source, valueText(value)]);
  return table(["SETTING", "FROM", "VALUE"], rows);
}

function valueText(value: unknown): string {
  if (value === null) return "-";
  if (Array.isArray(value)) return value.join(" ") || "-";
  if (typeof value === "string") return value;
  const text = JSON.stringify(value);
  return text === "{}" ? "-" : text;
}
