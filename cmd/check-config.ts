/**
 * dns11 check-config: validates a settings file and prints the effective settings. It needs neither root nor an engine.
 */
import type { Command } from "commander";

import type { SettingOrigins } from "../src/base/model/setting-origins.ts";
import { BadSettings } from "../src/config/bad-settings.ts";
import { FEATURE_MAPS } from "../src/config/keys.ts";
import type { FolderLayer } from "../src/config/file/folder-layers.ts";
import type { SettingsLayer } from "../src/config/layers.ts";
import { mergeSettings } from "../src/config/merge-settings.ts";
import type { Settings } from "../src/config/settings.ts";
import { loadReports } from "../src/features/load.ts";
import { addJsonOption } from "./options/control-options.ts";
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
    const file = await readSettingsFile(path);
    const folders = await readFolders(file);
    const settings = mergeSettings([file, ...folders]);
    await checkFiles(settings);
    const { origins, features } = settings;
    const withoutMeaning = folders.flatMap((each) => each.withoutMeaning);
    const warnings = await warningsOf(features);
    const isNoted = warnings.length > 0;
    process.stdout.write(
      json === true
        ? jsonLine({ file: path, settings: origins, withoutMeaning, ...(isNoted && { warnings }) })
        : `${path} is valid\n${isNoted ? `\n${printableLines(warnings)}` : ""}\n${list(origins)}${withoutMeaningText(folders)}`,
    );
  });
}

/** Throws a Fault that lists the mistakes in files that the settings name. */
async function checkFiles(settings: Settings): Promise<void> {
  const reports = await loadReports();
  const found = await Promise.all(reports.map(async (each) => (await each.fileMistakes?.(settings)) ?? []));
  BadSettings.throwAny(found.flat());
}

async function warningsOf(features: Readonly<Record<string, unknown>>): Promise<string[]> {
  const all = Object.entries(FEATURE_MAPS).map(
    async ([key, { file }]) => (await file()).warnings?.(features[key]) ?? [],
  );
  return (await Promise.all(all)).flat();
}

/** The folders of other programs that the file names. */
async function readFolders(file: SettingsLayer): Promise<readonly FolderLayer[]> {
  const { readFolder, readFolderLayers } = await import("../src/config/file/folder-layers.ts");
  return await readFolderLayers([file], readFolder);
}

function withoutMeaningText(folders: readonly FolderLayer[]): string {
  return folders
    .filter(({ withoutMeaning }) => withoutMeaning.length > 0)
    .map(
      ({ source, withoutMeaning }) =>
        `\nOptions of ${source} that mean nothing here:\n  ${withoutMeaning.join("\n  ")}\n`,
    )
    .join("");
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
