/**
 * Complete: the candidates for the word being typed. They come from the program's own definition, so a new command, flag or
 * choice needs no change here.
 */
import { type Argument, type Command, InvalidArgumentError, type Option } from "commander";

interface CompletionCandidate {
  readonly word: string;
  readonly description: string;
}

interface Completion {
  readonly candidates: readonly CompletionCandidate[];
  /** Whether the shell should offer file names as well. */
  readonly wantsFiles: boolean;
}

/** What is running, for completion. */
export interface RunningNames {
  /** Containers and Compose services. */
  readonly containers: readonly string[];
  readonly projects: readonly string[];
}

/** Fetches them with the flags already on the line (--host, --state-dir, --project). */
type FetchNames = (flags: ReadonlyMap<string, string>) => Promise<RunningNames>;

interface CommandPosition {
  readonly command: Command;
  /** The parent of `command`; `help` completes the parent's commands. */
  readonly parent: Command;
  /** The flag whose value is being typed, if any. */
  readonly option: Option | undefined;
  readonly argumentsBefore: number;
  /** Whether `--` came before. */
  readonly hasNoFlags: boolean;
  readonly flags: ReadonlyMap<string, string>;
}

const NOTHING: Completion = { candidates: [], wantsFiles: false };
/** Placeholders in the usage that mean a file, a container or a project: `--config <file>`, `[container]`. */
const FILES = /^(?:file|path|folder)$/;
const CONTAINERS = /^(?:container|node)$/;
const PROJECT = "project";
/** A value that no flag accepts: its error message lists the accepted ones. */
const INVALID_VALUE = "?";

/** `words` are those after the program's name; the last one is the one being typed. */
export async function complete(
  program: Command,
  words: readonly string[],
  fetchNames: FetchNames,
): Promise<Completion> {
  const typed = words.at(-1) ?? "";
  const position = positionAfter(program, words.slice(0, -1));
  // Some shells (bash) split `--flag=value` at the equals sign.
  if (position.option !== undefined)
    return await valueOf(position, position.option, typed === "=" ? "" : typed, fetchNames);
  const [, flag, start] = /^(--[^=]+)=(.*)$/.exec(typed) ?? [];
  if (flag !== undefined && !position.hasNoFlags) {
    const option = optionsOf(position.command).find(({ long }) => long === flag);
    if (option === undefined) return NOTHING;
    const { candidates, wantsFiles } = await valueOf(position, option, start ?? "", fetchNames);
    return {
      wantsFiles,
      candidates: candidates.map(({ word, description }) => ({ word: `${flag}=${word}`, description })),
    };
  }
  if (typed.startsWith("-") && !position.hasNoFlags) {
    return startingWith(
      typed,
      optionsOf(position.command).map(({ long, short, description }) => ({
        word: long ?? short ?? "",
        description,
      })),
    );
  }
  return await wordAt(position, typed, fetchNames);
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

async function wordAt(position: CommandPosition, typed: string, fetchNames: FetchNames): Promise<Completion> {
  const { command, argumentsBefore, hasNoFlags } = position;
  const commands = argumentsBefore === 0 && !hasNoFlags ? commandsOf(command) : [];
  const declared = command.registeredArguments;
  const argument = declared[argumentsBefore] ?? (declared.at(-1)?.variadic === true ? declared.at(-1) : undefined);
  const values = argument === undefined ? NOTHING : await valueOf(position, argument, typed, fetchNames);
  return {
    wantsFiles: values.wantsFiles,
    candidates: [
      ...startingWith(
        typed,
        commands.map((each) => ({ word: each.name(), description: each.summary() || each.description() })),
      ).candidates,
      ...values.candidates,
    ],
  };
}

async function valueOf(
  position: CommandPosition,
  target: Option | Argument,
  typed: string,
  fetchNames: FetchNames,
): Promise<Completion> {
  const name = nameOf(target);
  // Most names to query are those of containers, and the last one is the container to query from.
  const isQueried = !("long" in target) && target.variadic && name === "name";
  if (isQueried || CONTAINERS.test(name)) {
    return startingWith(typed, names((await fetchNames(position.flags)).containers));
  }
  if (name === PROJECT) return startingWith(typed, names((await fetchNames(position.flags)).projects));
  if (FILES.test(name)) return { candidates: [], wantsFiles: true };
  // The argument of `help` is the name of a command of ours, that of `run --with` one of the machine.
  if (name === "command" && !("long" in target)) {
    if (position.command.name() !== "help") return { candidates: [], wantsFiles: true };
    return startingWith(typed, plain(commandsOf(position.parent).map((each) => each.name())));
  }
  return startingWith(typed, plain(choicesOf(target)));
}

/** The values that a flag or argument accepts: its declared choices, or those that its reader's error lists. */
function choicesOf(target: Option | Argument): readonly string[] {
  if (target.argChoices !== undefined) return target.argChoices;
  try {
    target.parseArg?.(INVALID_VALUE, undefined);
  } catch (error) {
    if (!(error instanceof InvalidArgumentError)) throw error;
    const [, words] = /^Use one of (.+?)(?: or an? .+)?\.$/.exec(error.message) ?? [];
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

function nameOf(target: Option | Argument): string {
  if (!("long" in target)) return target.name();
  return /[<[]([^\]>.]+)/.exec(target.flags)?.[1] ?? "";
}

/** Not every shell quotes what it inserts. */
function names(words: readonly string[]): CompletionCandidate[] {
  return plain(words.filter(isPlainName));
}

function plain(words: readonly string[]): CompletionCandidate[] {
  return words.map((word) => ({ word, description: "" }));
}

function startingWith(typed: string, candidates: readonly CompletionCandidate[]): Completion {
  return { candidates: candidates.filter(({ word }) => word.startsWith(typed)), wantsFiles: false };
}

/**
 * A name that every shell takes as it is. The engine accepts no other for a container, but labels can claim any text
 * as a service or a project.
 */
const PLAIN_NAME = /^[a-zA-Z0-9][\w.-]*$/;

function isPlainName(text: string): boolean {
  return PLAIN_NAME.test(text);
}
