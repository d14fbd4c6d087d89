/**
 * dns11 reload: makes a running instance reload its settings file, as SIGHUP does, and prints what changed.
 */
import type { Command } from "commander";

import type { ReloadReport } from "../src/api/status.ts";
import { type ControlOptions, addControlOptions, addJsonOption, clientFor } from "./options/control-options.ts";
import { jsonLine, printable } from "./text/printable.ts";

export function addReload(program: Command): void {
  const command = program.command("reload").description("Reload the settings file and show what changed");
  addJsonOption(addControlOptions(command)).action(async (options: ControlOptions) => {
    const report = await (await clientFor(options)).reload();
    process.stdout.write(options.json === true ? jsonLine(report) : reloadText(report));
  });
}

function reloadText({ config, changed }: ReloadReport): string {
  if (changed.length === 0) return `reloaded ${config}; nothing changed\n`;
  return `reloaded ${config}:\n${changed.map((line) => `  ${printable(line)}\n`).join("")}`;
}
