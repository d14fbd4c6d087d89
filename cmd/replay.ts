/**
 * dns11 replay: answers containers from a recorded file alone, for as long as the command runs.
 */
import { type Command, Option } from "commander";

import { MISSING, type Missing, replayRules } from "../src/api/lab/tape.ts";
import { type ControlOptions, addControlOptions, clientFor } from "./options/control-options.ts";
import { readDuration } from "./lease/duration.ts";
import { holdLease, ruleReport, untilText, useText } from "./lease/held-lease.ts";
import { jsonLine } from "./text/printable.ts";
import { type ScopeOptions, addScopeOptions, scopeOf, scopeText } from "./lease/scope-options.ts";

interface ReplayOptions extends ControlOptions, ScopeOptions {
  readonly missing: Missing;
  readonly for?: number;
}

export function addReplay(program: Command): void {
  const command = program
    .command("replay <file>")
    .summary("Answer containers from a recorded file alone")
    .description(
      "Answer containers from a file of dns11 record alone, until the command is interrupted; names of containers stay live",
    )
    .addOption(
      new Option("--missing <result>", "how names that are not in the file fail").choices(MISSING).default("nxdomain"),
    )
    .option("--for <time>", "end after this time, such as 10m", readDuration)
    .option("--json", "print JSON");
  addControlOptions(addScopeOptions(command)).action(
    async (file: string, options: ReplayOptions) => await replay(file, options),
  );
}

async function replay(file: string, options: ReplayOptions): Promise<void> {
  const scope = scopeOf(options);
  const { readTape } = await import("../src/api/lab/tape-file.ts");
  const rules = replayRules(readTape(file), scope, options.missing);
  const client = await clientFor(options);
  const lease = await client.openLease();
  await Promise.all(rules.map(async (rule) => await lease.send({ rule })));
  process.stderr.write(`replaying ${file} in ${scopeText(scope)}; ${untilText(options.for)}\n`);
  await holdLease(lease, options.for);
  const used = await ruleReport(lease);
  await lease.close();
  const missing = used.filter(({ action }) => action === "only");
  process.stdout.write(
    options.json === true ? jsonLine({ rules: used }) : missing.map((rule) => useText(rule)).join(""),
  );
}
