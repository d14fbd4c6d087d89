/**
 * dns11 record: records what containers ask and are answered, as a file that `dns11 replay` answers from.
 */
import type { Command } from "commander";

import { tapeOf } from "../src/api/lab/tape.ts";
import type { RecordedQuery } from "../src/api/lease.ts";
import { type ControlOptions, addControlOptions, clientFor } from "./options/control-options.ts";
import { NewFile } from "./process/new-file.ts";
import { readDuration } from "./lease/duration.ts";
import { holdLease, untilText } from "./lease/held-lease.ts";
import { type ScopeOptions, addScopeOptions, scopeOf, scopeText } from "./lease/scope-options.ts";

/** As the umask allows. */
const TAPE_MODE = 0o666;

interface RecordOptions extends ControlOptions, ScopeOptions {
  readonly for?: number;
}

export function addRecord(program: Command): void {
  const command = program
    .command("record <file>")
    .summary("Record what containers ask and are answered")
    .description(
      "Record what containers ask and are answered, until the command is interrupted, as a new file to replay",
    )
    .option("--for <time>", "end after this time, such as 10m", readDuration);
  addControlOptions(addScopeOptions(command)).action(
    async (file: string, options: RecordOptions) => await record(file, options),
  );
}

async function record(file: string, options: RecordOptions): Promise<void> {
  const { tapeText } = await import("../src/api/lab/tape-file.ts");
  const output = new NewFile(file, TAPE_MODE);
  const client = await clientFor(options);
  const lease = await client.openLease();
  const queries: RecordedQuery[] = [];
  let missed = 0;
  lease.onRecorded = (more, lost) => {
    queries.push(...more);
    missed += lost;
  };
  const scope = scopeOf(options);
  await lease.send({ record: { in: scope } });
  let isSaved = false;
  const save = (): void => {
    if (isSaved) return;
    isSaved = true;
    output.write(tapeText(tapeOf(queries)));
    const lost = missed === 0 ? "" : `; ${missed} queries came too fast and are missing`;
    process.stderr.write(`${queries.length} queries recorded in ${file}${lost}\n`);
  };
  // A second Ctrl-C ends the process at once.
  process.once("exit", save);
  process.stderr.write(`recording ${scopeText(scope)}; ${untilText(options.for)}\n`);
  try {
    await holdLease(lease, options.for);
    // The end of the lease sends what is left.
    await lease.close();
  } finally {
    save();
  }
}
