/**
 * Help layout: how every help text is arranged: examples come first.
 */
import { type Command, Help } from "commander";

import { EXAMPLES, type Example } from "./examples.ts";

const GAP = 2;
/** Of commands whose features bring their own. */
const ownExamples = new WeakMap<Command, readonly Example[]>();

export function addExamples(command: Command, ...examples: readonly Example[]): void {
  ownExamples.set(command, examples);
}

/** For the program, before its commands are added: they inherit it. */
export const HELP_LAYOUT: Partial<Help> = {
  showGlobalOptions: false,
  sortOptions: false,
  subcommandTerm: (command) => [command.name(), ...command.registeredArguments.map((each) => term(each))].join(" "),
  formatHelp(command, helper) {
    return `${examplesOf(command)}${Help.prototype.formatHelp.call(helper, command, helper)}`;
  },
};

function examplesOf(command: Command): string {
  const program = nameOf(command);
  const examples = (ownExamples.get(command) ?? EXAMPLES[pathOf(command)] ?? []).map(
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
