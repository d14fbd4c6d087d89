/**
 * Help layout: how every help text is arranged: examples come first, and options that few need are shown by --help-all.
 */
import { type Command, Help, Option } from "commander";

import { EXAMPLES } from "./examples.ts";

export const HELP_ALL = "--help-all";
const GAP = 2;

/** Commands whose whole help is asked for. */
const whole = new WeakSet<Command>();

/** For the program, before its commands are added: they inherit it. */
export const HELP_LAYOUT: Partial<Help> = {
  showGlobalOptions: false,
  sortOptions: false,
  subcommandTerm: (command) => [command.name(), ...command.registeredArguments.map((each) => term(each))].join(" "),
  formatHelp(command, helper) {
    const rare = rareOptions(command, helper);
    const shown = Object.create(helper, {
      visibleOptions: { value: () => helper.visibleOptions(command).filter((option) => !rare.has(option)) },
    }) as Help;
    return `${examplesOf(command)}${Help.prototype.formatHelp.call(shown, command, shown)}`;
  },
};

/** Makes the next help of a command its whole help. */
export function showWholeHelp(command: Command): void {
  whole.add(command);
}

/** Gives --help-all to a command with options that few need. */
export function addHelpAll(command: Command): void {
  const rare = rareOptions(command, command.createHelp());
  if (rare.size === 0) return;
  command.addOption(new Option(HELP_ALL, `show ${rare.size} more options`));
  command.on("option:help-all", () => {
    showWholeHelp(command);
    command.help();
  });
}

/** Options with a heading of their own are those that few need. */
function rareOptions(command: Command, helper: Help): ReadonlySet<Option> {
  if (whole.has(command)) return new Set();
  return new Set(helper.visibleOptions(command).filter(({ helpGroupHeading }) => helpGroupHeading !== undefined));
}

function examplesOf(command: Command): string {
  const program = nameOf(command);
  const examples = (EXAMPLES[pathOf(command)] ?? []).map(
    ([line, purpose]) => [line.replace("dns11", program), purpose] as const,
  );
  const width = Math.max(...examples.map(([line]) => line.length)) + GAP;
  const lines = examples.map(([line, purpose]) => `  ${line.padEnd(width)}${purpose}\n`);
  return lines.length === 0 ? "" : `Examples:\n${lines.join("")}\n`;
}

/** As it was called: also a plugin of the docker command. */
function nameOf(command: Command): string {
  return command.parent === null ? command.name() : nameOf(command.parent);
}

/** The words of a command after the program's name. */
function pathOf(command: Command): string {
  return command.parent === null ? "" : [pathOf(command.parent), command.name()].filter(Boolean).join(" ");
}

function term(argument: Command["registeredArguments"][number]): string {
  const name = argument.variadic ? `${argument.name()}...` : argument.name();
  return argument.required ? `<${name}>` : `[${name}]`;
}
