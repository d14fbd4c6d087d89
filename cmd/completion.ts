/**
 * dns11 completion: the completion scripts for shells, and the hidden command that they call for candidates.
 */
import { Argument, type Command } from "commander";

import { defaultStateDir } from "../src/api/state-paths.ts";
import { clientFor } from "./options/control-options.ts";
import { type RunningNames, complete } from "./shell/complete.ts";
import { SCRIPTS } from "./shell/scripts.ts";

const WITH_FILES = ":0";
const WITHOUT_FILES = ":4";
const COMPLETE_COMMAND = "__complete";

export function addCompletion(program: Command): void {
  program
    .command("completion")
    .description("Print the completion script for a shell")
    .addArgument(new Argument("<shell>", "the shell").choices(Object.keys(SCRIPTS)))
    .action((shell: keyof typeof SCRIPTS) => void process.stdout.write(SCRIPTS[shell]));
  program
    .command(COMPLETE_COMMAND, { hidden: true })
    .helpOption(false)
    .allowUnknownOption()
    .allowExcessArguments()
    // The words as they were typed: `--` and flags are part of the line to complete.
    .action(async () => await answer(program, process.argv.slice(process.argv.indexOf(COMPLETE_COMMAND) + 1)));
}

async function answer(program: Command, words: readonly string[]): Promise<void> {
  const { candidates, wantsFiles } = await complete(program, words, runningNames);
  const lines = candidates.map(({ word, description }) => (description === "" ? word : `${word}\t${description}`));
  process.stdout.write(`${[...lines, wantsFiles ? WITH_FILES : WITHOUT_FILES].join("\n")}\n`);
}

/** An error would disturb the line being typed: without a running dns11, or without permission, there are no names. */
async function runningNames(flags: ReadonlyMap<string, string>): Promise<RunningNames> {
  try {
    const host = flags.get("--host");
    const stateDir = flags.get("--state-dir") ?? (process.env["DNS11_STATE_DIR"] || defaultStateDir(host));
    const client = await clientFor({ stateDir, ...(host !== undefined && { host }) });
    const { containers } = await client.status();
    const project = flags.get("--project");
    const wanted = containers.filter((each) => project === undefined || each.project === project);
    const services = wanted.flatMap(({ service }) => service ?? []);
    return {
      containers: sorted([...wanted.map(({ name }) => name), ...services]),
      projects: sorted(containers.flatMap((each) => each.project ?? [])),
    };
  } catch {
    return { containers: [], projects: [] };
  }
}

function sorted(words: readonly string[]): string[] {
  return [...new Set(words)].toSorted();
}
