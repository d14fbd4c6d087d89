/**
 * Complete: which words may follow on the command line. Everything is read from the program itself, so a command, a flag or
 * a choice that is added anywhere is completed without a word here.
 */
import { type Argument, type Command, InvalidArgumentError, type Option } from "commander";

interface CompletionCandidate {
  readonly word: string;
  readonly does: string;
}

export interface Completion {
  readonly candidates: readonly CompletionCandidate[];
  /** The shell knows files better than we do. */
  readonly wantsFiles: boolean;
}

/** Asks for the names of containers, with the flags that stand on the line (--host, --state-dir). */
export type FetchContainerNames = (flags: ReadonlyMap<string, string>) => Promise<readonly string[]>;

interface CommandPosition {
  readonly command: Command;
  /** The command whose command it is; that of \`help\` does not know it. */
  readonly parent: Command;
  /** The flag whose value is being typed. */
  readonly option: Option | undefined;
  readonly argumentsBefore: number;
  /** After `--`. */
  readonly hasNoFlags: boolean;
  readonly flags: ReadonlyMap<string, string>;
}

const NOTHING: Completion = { candidates: [], wantsFiles: false };
/** What stands for a file or a container in the program's own usage: `--config <file>`, `[container]`. */
const FILES = /^(?:file|path|folder)$/;
const CONTAINERS = /^(?:container|node)$/;
/** What no flag takes, to hear what it takes instead. */
const INVALID_VALUE = "?";

/** `words` are those after the program's name; the last one is being typed. */
export async function complete(
  program: Command,
  words: readonly string[],
  askNames: FetchContainerNames,
): Promise<Completion> {
  const typed = words.at(-1) ?? "";
  const place = positionAfter(program, words.slice(0, -1));
  // Some shells (bash) take `--flag=value` apart at the sign.
  if (place.option !== undefined) return await valueOf(place, place.option, typed === "=" ? "" : typed, askNames);
  const [, flag, start] = /^(--[^=]+)=(.*)$/.exec(typed) ?? [];
  if (flag !== undefined && !place.hasNoFlags) {
    const option = optionsOf(place.command).find(({ long }) => long === flag);
    if (option === undefined) return NOTHING;
    const { candidates, wantsFiles } = await valueOf(place, option, start ?? "", askNames);
    return { wantsFiles, candidates: candidates.map(({ word, does }) => ({ word: `${flag}=${word}`, does })) };
  }
  if (typed.startsWith("-") && !place.hasNoFlags) {
    return startingWith(
      typed,
      optionsOf(place.command).map(({ long, short, description }) => ({
        word: long ?? short ?? "",
        does: description,
      })),
    );
  }
  return await wordAt(place, typed, askNames);
}

function positionAfter(program: Command, words: readonly string[]): CommandPosition {
  let command = program;
  let parent = program;
  let option: Option | undefined;
  let argumentsBefore = 0;
  let hasNoFlags = false;
  const flags = new Map<string, string>();
  for (const word of words) {
    if (option !== undefined) {
      if (word === "=") continue;
      flags.set(option.long ?? "", word);
      option = undefined;
    } else if (hasNoFlags || !word.startsWith("-")) {
      const next = argumentsBefore === 0 && !hasNoFlags ? commandCalled(command, word) : undefined;
      if (next === undefined) argumentsBefore += 1;
      else [parent, command] = [command, next];
    } else if (word === "--") {
      hasNoFlags = true;
    } else {
      const [name, value] = word.split(/=(.*)/s);
      const found = optionsOf(command).find(({ long, short }) => long === name || short === name);
      if (value !== undefined) flags.set(name ?? "", value);
      else if (found?.required === true) option = found;
    }
  }
  return { command, parent, option, argumentsBefore, hasNoFlags, flags };
}

async function wordAt(place: CommandPosition, typed: string, askNames: FetchContainerNames): Promise<Completion> {
  const { command, argumentsBefore, hasNoFlags } = place;
  const commands = argumentsBefore === 0 && !hasNoFlags ? commandsOf(command) : [];
  const declared = command.registeredArguments;
  const argument = declared[argumentsBefore] ?? (declared.at(-1)?.variadic === true ? declared.at(-1) : undefined);
  const values = argument === undefined ? NOTHING : await valueOf(place, argument, typed, askNames);
  return {
    wantsFiles: values.wantsFiles,
    candidates: [
      ...startingWith(
        typed,
        commands.map((each) => ({ word: each.name(), does: each.summary() || each.description() })),
      ).candidates,
      ...values.candidates,
    ],
  };
}

async function valueOf(
  place: CommandPosition,
  taker: Option | Argument,
  typed: string,
  askNames: FetchContainerNames,
): Promise<Completion> {
  const name = nameOf(taker);
  if (CONTAINERS.test(name)) return startingWith(typed, plain(await askNames(place.flags)));
  if (FILES.test(name)) return { candidates: [], wantsFiles: true };
  // `help` takes the name of a command.
  if (name === "command" && !("long" in taker)) {
    return startingWith(typed, plain(commandsOf(place.parent).map((each) => each.name())));
  }
  return startingWith(typed, plain(choicesOf(taker)));
}

/** The words that a flag or an argument takes: those that it declares, or else those that its reader tells. */
function choicesOf(taker: Option | Argument): readonly string[] {
  if (taker.argChoices !== undefined) return taker.argChoices;
  try {
    taker.parseArg?.(INVALID_VALUE, undefined);
  } catch (error) {
    if (!(error instanceof InvalidArgumentError)) throw error;
    const [, words] = /"\?" is (?:none of|neither) (.+?)(?: nor an? .+)?\.?$/.exec(error.message) ?? [];
    return words?.split(", ") ?? [];
  }
  return [];
}

export function optionsOf(command: Command): readonly Option[] {
  return command.createHelp().visibleOptions(command);
}

export function commandsOf(command: Command): readonly Command[] {
  return command.createHelp().visibleCommands(command);
}

function commandCalled(command: Command, word: string): Command | undefined {
  return commandsOf(command).find((each) => each.name() === word || each.aliases().includes(word));
}

function nameOf(taker: Option | Argument): string {
  if (!("long" in taker)) return taker.name();
  return /[<[]([^\]>.]+)/.exec(taker.flags)?.[1] ?? "";
}

function plain(words: readonly string[]): CompletionCandidate[] {
  return words.map((word) => ({ word, does: "" }));
}

function startingWith(typed: string, candidates: readonly CompletionCandidate[]): Completion {
  return { candidates: candidates.filter(({ word }) => word.startsWith(typed)), wantsFiles: false };
}
