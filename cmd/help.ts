/**
 * dns11 help: the help of a command, also of a command's own command; what there is not is an error, as everywhere else.
 */
import type { Command } from "commander";

export function addHelp(program: Command): void {
  program
    .helpCommand(false)
    .command("help [command...]")
    .description("display help for command")
    .action((words: readonly string[]) => {
      let command = program;
      for (const word of words) command = commandOf(command, word);
      command.help();
    });
}

/** One of a command's commands; where there is none of that name, the command line ends with that error. */
function commandOf(command: Command, word: string): Command {
  return command.commands.find((each) => each.name() === word) ?? unknownCommand(command, word);
}

export function unknownCommand(command: Command, word: string): never {
  return command.error(`error: unknown command '${word}'`, { code: "commander.unknownCommand" });
}
