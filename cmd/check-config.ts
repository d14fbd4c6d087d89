/**
 * dns11 check-config: whether a settings file is good, and what it comes to. It needs neither root nor an engine.
 */
import type { Command } from "commander";

import type { SettingOrigins } from "../src/base/model/setting-origins.ts";
import { mergeSettings } from "../src/config/merge-settings.ts";
import { table } from "./table.ts";

export function addCheckConfig(program: Command): void {
  program
    .command("check-config")
    .description("Say whether a settings file is good and what it comes to; every mistake with its line otherwise")
    .argument("<file>", "the settings file")
    .option("--json", "as JSON")
    .action(async (path: string, { json }: { readonly json?: boolean }) => {
      const { readSettingsFile } = await import("../src/config/file/settings-file.ts");
      const { origins } = mergeSettings([await readSettingsFile(path)]);
      process.stdout.write(
        json === true
          ? `${JSON.stringify({ file: path, settings: origins })}\n`
          : `${path} is good\n\n${list(origins)}`,
      );
    });
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
