/**
 * dns11 completion: what a shell needs to complete dns11's command line, and the answers that it gets while somebody types.
 */
import { Argument, type Command } from "commander";

import { DEFAULT_STATE_DIR } from "../src/config/settings.ts";
import { clientFor } from "./control-options.ts";
import { complete } from "./shell/complete.ts";
import { SCRIPTS } from "./shell/scripts.ts";

const WITH_FILES = ":0";
const WITHOUT_FILES = ":4";
const COMPLETE_COMMAND = "__complete";

export function addCompletion(program: Command): void {
  program
    .command("completion")
    .description("Print what makes a shell complete dns11's commands, flags, choices and containers")
    .addArgument(new Argument("<shell>", "the shell").choices(Object.keys(SCRIPTS)))
    .action((shell: keyof typeof SCRIPTS) => void process.stdout.write(SCRIPTS[shell]));
  program
    .command(COMPLETE_COMMAND, { hidden: true })
    .helpOption(false)
    .allowUnknownOption()
    .allowExcessArguments()
    // The words as they were typed: `--` and flags are part of what is asked.
    .action(async () => await answer(program, process.argv.slice(process.argv.indexOf(COMPLETE_COMMAND) + 1)));
}

async function answer(program: Command, words: readonly string[]): Promise<void> {
  const { candidates, wantsFiles } = await complete(program, words, containerNames);
  const lines = candidates.map(({ word, does }) => (does === "" ? word : `${word}\t${does}`));
  process.stdout.write(`${[...lines, wantsFiles ? WITH_FILES : WITHOUT_FILES].join("\n")}\n`);
}

/** Whoever types wants no error on the line: where no dns11 runs, or it may not be asked, there are no names. */
async function containerNames(flags: ReadonlyMap<string, string>): Promise<readonly string[]> {
  try {
    const host = flags.get("--host");
    const stateDir = flags.get("--state-dir") ?? (process.env["DNS11_STATE_DIR"] || DEFAULT_STATE_DIR);
    const client = await clientFor({ stateDir, ...(host !== undefined && { host }) });
    return (await client.status()).containers.map(({ name }) => name);
  } catch {
    return [];
  }
}
