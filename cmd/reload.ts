/**
 * dns11 reload: has a running instance read its settings file again, as SIGHUP does, and says what came of it.
 */
import type { Command } from "commander";

import type { ReloadReport } from "../src/api/status.ts";
import { type ControlOptions, addControlOptions, addJsonOption, clientFor } from "./control-options.ts";
import { printable } from "./printable.ts";

export function addReload(program: Command): void {
  const command = program
    .command("reload")
    .description("Have the settings file read again, and say what changed, or what is wrong with it");
  addJsonOption(addControlOptions(command)).action(async (options: ControlOptions) => {
    const report = await (await clientFor(options)).reload();
    process.stdout.write(options.json === true ? `${JSON.stringify(report)}\n` : reloadText(report));
  });
}

function reloadText({ config, changed }: ReloadReport): string {
  if (changed.length === 0) return `${config} was read again; nothing changed\n`;
  return `${config} was read again:\n${changed.map((line) => `  ${printable(line)}\n`).join("")}`;
}
