/**
 * dns11 explain: how names resolve in a container, or why they fail. It works without a running dns11, too.
 */
import type { Command } from "commander";

import { type Explanation, recordsFor } from "../src/api/names.ts";
import { loadReports } from "../src/features/load.ts";
import { EXIT } from "./process/exit-code.ts";
import { explanationText } from "./text/explanation-text.ts";
import { askForNames } from "./options/name-client.ts";
import { type NameOptions, addNameOptions } from "./options/name-options.ts";
import { jsonLine } from "./text/printable.ts";
import { displayOf } from "./text/terminal.ts";

interface ExplainOptions extends NameOptions {
  readonly verbose?: boolean;
  readonly fail?: boolean;
}

export function addExplain(program: Command): void {
  const command = program
    .command("explain")
    .summary("Explain how a name resolves, or why it fails")
    .description(
      "Explain how names resolve in a container, or why they fail, and what to do; works without a running dns11",
    );
  addNameOptions(command)
    .option("-v, --verbose", "show each step, with the upstream queries, and the whole reply")
    .option("--fail", `exit with ${EXIT.failure} unless programs get records for each name`)
    .action(async (words: readonly string[], options: ExplainOptions) => await explain(words, options));
}

async function explain(words: readonly string[], options: ExplainOptions): Promise<void> {
  const explained = await askForNames(words, options, "explain", async (client, each) => await client.explain(each));
  const isVerbose = options.verbose === true;
  const reports = await loadReports();
  const texts =
    options.json === true
      ? explained.map(jsonLine).join("")
      : explained.map((each) => explanationText(each, isVerbose, displayOf(process.stdout), reports)).join("\n");
  process.stdout.write(texts);
  if (options.fail === true && !explained.every(isResolved)) process.exitCode = EXIT.failure;
}

/** Programs read the container's own files before they query. */
function isResolved({ fromFile, fromSearch, reply, question }: Explanation): boolean {
  if (fromFile !== undefined) return fromFile.addresses.length > 0;
  return fromSearch !== undefined || (reply !== null && recordsFor(reply, question.type).length > 0);
}
