/**
 * dns11 help: the help of a command or subcommand. An unknown command is an error, as everywhere else.
 */
import type { Command } from "commander";

export function addHelp(program: Command): void {
  program
    .command("help [command...]")
    .description("Show help for a command")
    .action((words: readonly string[]) => {
      let command = program;
      for (const word of words) command = requireCommand(command, word);
      command.help();
    });
}

/** The subcommand of that name; exits with an error if there is none. */
function requireCommand(command: Command, word: string): Command {
  return command.commands.find((each) => each.name() === word) ?? unknownCommand(command, word);
}

function unknownCommand(command: Command, word: string): never {
  return command.error(`error: unknown command '${word}'`, { code: "commander.unknownCommand" });
}
