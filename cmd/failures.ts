/**
 * dns11 failures: names that fail in containers, why, and how to fix it.
 */
import type { Command } from "commander";

import { type FailureReport, isFailing } from "../src/api/failures.ts";
import { EXIT } from "./process/exit-code.ts";
import { type ProjectOptions, addProjectOption, containersRequest } from "./options/container-argument.ts";
import { type ControlOptions, addControlOptions, addJsonOption, clientFor } from "./options/control-options.ts";
import { Fault } from "../src/base/lib/fault.ts";
import { jsonLine } from "./text/printable.ts";
import { abortOnSignal, stopped } from "./process/own-process.ts";
import { failuresText, followedText } from "./text/failures-text.ts";
import { displayOf } from "./text/terminal.ts";
import { type WatchOptions, addWatchOption, printOrWatch } from "./screen/watch.ts";

interface FailuresOptions extends ControlOptions, ProjectOptions, WatchOptions {
  readonly follow?: boolean;
  readonly all?: boolean;
  readonly fail?: boolean;
}

export function addFailures(program: Command): void {
  const command = program
    .command("failures [container]")
    .summary("List names that fail, why, and how to fix it")
    .description("List names that fail, why, and how to fix it, in one container or in all")
    .option("-a, --all", "also names of the outside world that do not exist, and names that have resolved since")
    .option(
      "--fail",
      `exit with ${EXIT.failure} if a name that is listed fails, or a container's failures are not seen`,
    )
    .option("-f, --follow", "show failures as they happen");
  addJsonOption(command, "print JSON; with --follow, one object per line");
  addControlOptions(addProjectOption(addWatchOption(command))).action(
    async (container: string | undefined, options: FailuresOptions) => await failures(container, options),
  );
}

async function failures(container: string | undefined, options: FailuresOptions): Promise<void> {
  const client = await clientFor(options);
  const chosen = await containersRequest(client, container, options);
  if (options.follow === true && options.fail === true)
    throw new Fault("USAGE", "--fail has no effect with --follow, which does not end by itself");
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
    const isListed = (each: FailureReport): boolean => options.all === true || isFailing(each);
    if (options.fail === true && (report.failures.some(isListed) || report.unwatched.length > 0))
      process.exitCode = EXIT.failure;
    if (options.json === true) return jsonLine(report);
    return failuresText(report, options.all === true, Date.now(), displayOf(process.stdout));
  });
}
