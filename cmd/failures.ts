/**
 * dns11 failures: names that fail in containers, why, and how to fix it.
 */
import type { Command } from "commander";

import { isFailing } from "../src/api/failures.ts";
import { type ProjectOptions, addProjectOption, containersRequest } from "./options/container-argument.ts";
import { type ControlOptions, addControlOptions, addJsonOption, clientFor } from "./options/control-options.ts";
import { jsonLine } from "./text/printable.ts";
import { abortOnSignal, stopped } from "./process/signals.ts";
import { failuresText, followedText } from "./text/failures-text.ts";
import { displayOf } from "./text/terminal.ts";
import { type WatchOptions, addWatchOption, printOrWatch } from "./screen/watch.ts";

interface FailuresOptions extends ControlOptions, ProjectOptions, WatchOptions {
  readonly follow?: boolean;
  readonly all?: boolean;
}

export function addFailures(program: Command): void {
  const command = program
    .command("failures [container]")
    .summary("List names that fail, why, and how to fix it")
    .description("List names that fail, why, and how to fix it, in one container or in all")
    .option("-a, --all", "also names of the outside world, and names that have resolved since")
    .option("-f, --follow", "show failures as they happen");
  addJsonOption(command, "print JSON; with --follow, one object per line");
  addControlOptions(addProjectOption(addWatchOption(command))).action(
    async (container: string | undefined, options: FailuresOptions) => await failures(container, options),
  );
}

async function failures(container: string | undefined, options: FailuresOptions): Promise<void> {
  const client = await clientFor(options);
  const chosen = await containersRequest(client, container, options);
  if (options.follow === true) {
    const signal = abortOnSignal();
    for await (const each of client.followFailures(chosen, signal)) {
      if (options.json === true) process.stdout.write(jsonLine(each));
      else if (options.all === true || isFailing(each)) process.stdout.write(followedText(each));
    }
    if (!signal.aborted) throw stopped();
    return;
  }
  await printOrWatch(options, async () => {
    const report = await client.failures(chosen);
    if (options.json === true) return jsonLine(report);
    return failuresText(report, options.all === true, Date.now(), displayOf(process.stdout));
  });
}
