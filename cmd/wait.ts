/**
 * dns11 wait: waits until a name resolves in a container, for scripts.
 */
import { type Command, Option } from "commander";

import { waitUntilResolves } from "../src/api/resolve-wait.ts";
import { type ControlOptions, addControlOptions, addJsonOption, clientFor } from "./options/control-options.ts";
import { readDuration } from "./options/name-options.ts";
import { EXIT } from "./process/exit-code.ts";
import { jsonLine, printable } from "./text/printable.ts";

interface WaitOptions extends ControlOptions {
  readonly in: string;
  readonly type: string;
  readonly timeout: number;
}

const DEFAULT_MS = 30_000;

export function addWait(program: Command): void {
  const command = program
    .command("wait <name>")
    .summary("Wait until a name resolves in a container")
    .description(
      `Wait until a name resolves in a container, or in each container of a service; exits with ${EXIT.failure} and the cause if it does not in time`,
    )
    .requiredOption("--in <container>", "the container, or the Compose service; it may start later")
    .option("-t, --type <type>", "record type", "A")
    .addOption(
      new Option("--timeout <time>", "how long to wait")
        .argParser(readDuration)
        .default(DEFAULT_MS, `${DEFAULT_MS / 1000}s`),
    );
  addControlOptions(addJsonOption(command)).action(
    async (name: string, options: WaitOptions) => await wait(name, options),
  );
}

async function wait(name: string, options: WaitOptions): Promise<void> {
  const { in: container, type, timeout } = options;
  const client = await clientFor(options);
  const records = await waitUntilResolves(client, { container, name, type }, timeout, new AbortController().signal);
  process.stdout.write(
    options.json === true ? jsonLine(records) : records.map(({ data }) => `${printable(data)}\n`).join(""),
  );
}
