/**
 * dns11 reload: makes a running instance reload its settings file, as SIGHUP does, and prints what changed.
 */
import { type Command, InvalidArgumentError } from "commander";

import type { ReloadReport } from "../src/api/status.ts";
import { type ControlOptions, addControlOptions, addJsonOption, clientFor } from "./options/control-options.ts";
import { jsonLine, printable } from "./text/printable.ts";

interface ReloadOptions extends ControlOptions {
  readonly pid?: number;
}

export function addReload(program: Command): void {
  const command = program
    .command("reload")
    .description("Reload the settings file and show what changed")
    .option("--pid <pid>", "the instance that runs as this process, whichever engine it serves", readPid);
  addJsonOption(addControlOptions(command)).action(async (options: ReloadOptions) => {
    const report = await (await clientFor(options, options.pid)).reload();
    process.stdout.write(options.json === true ? jsonLine(report) : reloadText(report));
  });
}

function reloadText({ config, changed, afterRestart }: ReloadReport): string {
  const now = changed.filter((line) => !afterRestart.includes(line));
  const list = (lines: readonly string[]): string => lines.map((line) => `  ${printable(line)}\n`).join("");
  const head = now.length === 0 ? `reloaded ${config}; nothing changed\n` : `reloaded ${config}:\n${list(now)}`;
  if (afterRestart.length === 0) return head;
  return `${head}not in force until dns11 is started again (systemctl restart dns11, or dns11 run --replace):\n${list(afterRestart)}`;
}

function readPid(text: string): number {
  if (!/^[1-9]\d{0,9}$/.test(text)) throw new InvalidArgumentError("Use the number of a process.");
  return Number(text);
}
