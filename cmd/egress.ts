/**
 * dns11 egress: where containers connected to, and which names they had asked.
 */
import type { Command } from "commander";

import { type ProjectOptions, addProjectOption, containersRequest } from "./options/container-argument.ts";
import { type ControlOptions, addControlOptions, addJsonOption, clientFor } from "./options/control-options.ts";
import { type WatchOptions, addWatchOption, printOrWatch } from "./screen/watch.ts";
import { egressText } from "./text/egress-text.ts";
import { jsonLine } from "./text/printable.ts";
import { displayOf } from "./text/terminal.ts";

interface EgressOptions extends ControlOptions, ProjectOptions, WatchOptions {}

export function addEgress(program: Command): void {
  const command = program
    .command("egress [container]")
    .summary("List where containers connected to")
    .description("List where containers connected to and which names they had asked, in one container or in all");
  addJsonOption(command, "print JSON");
  addControlOptions(addProjectOption(addWatchOption(command))).action(
    async (container: string | undefined, options: EgressOptions) => await egress(container, options),
  );
}

async function egress(container: string | undefined, options: EgressOptions): Promise<void> {
  const client = await clientFor(options);
  const chosen = await containersRequest(client, container, options);
  await printOrWatch(options, async () => {
    const report = await client.egress(chosen);
    return options.json === true ? jsonLine(report) : egressText(report, Date.now(), displayOf(process.stdout));
  });
}
