/**
 * Options shared by the commands that query names in a container: names, type and container. The last word is the container
 * unless --in names it: a word alone does not tell whether it is a name or a container, because a container is both.
 */
import { isIP } from "node:net";
import { type Command, InvalidArgumentError } from "commander";
import { Fault, codeOf } from "../../src/base/lib/fault.ts";
import { type ProjectOptions, addEachOption, addProjectOption } from "./container-argument.ts";
import { type ControlOptions, addControlOptions, addJsonOption } from "./control-options.ts";

export interface NameOptions extends ControlOptions, ProjectOptions {
  readonly in?: string;
  readonly each?: boolean;
  readonly type?: string;
  readonly x?: boolean;
}

export function addNameOptions(command: Command): Command {
  command
    .usage("[options] <name...> --in <container>")
    .argument(
      "<name...>",
      "names to query, or IP addresses for reverse lookups; without --in, the last word is the container",
    )
    .option("--in <container>", "container to query from: its name, Compose service or ID")
    .option("-t, --type <type>", 'record type: A, AAAA, MX, TXT ..., or TYPEnnn (default: "A", for an address "PTR")')
    .option("-x", "reverse lookup; NAME must be an IP address");
  return addJsonOption(addControlOptions(addEachOption(addProjectOption(command))));
}

/** What is asked, and in which container. */
export interface Question {
  readonly names: readonly string[];
  readonly container: string;
  readonly type: string | undefined;
}

export function questionOf(words: readonly string[], options: NameOptions, command: string): Question {
  const isNamed = options.in !== undefined && options.in !== "";
  const names = isNamed ? words : words.slice(0, -1);
  const container = isNamed ? options.in : words.at(-1);
  if (container === undefined || names.length === 0) {
    throw new Fault("USAGE", `Container missing: use dns11 ${command} ${words.join(" ") || "NAME"} --in CONTAINER`, {
      remedy: "A name may resolve differently in each container. dns11 ps lists them.",
    });
  }
  for (const name of names) requireAddress(name, options);
  return { names, container, type: options.type };
}

function requireAddress(name: string, { type, x: isReverse }: NameOptions): void {
  if (isReverse !== true || (isIP(name.split("%", 1)[0] ?? "") !== 0 && type === undefined)) return;
  throw new Fault(
    "USAGE",
    `-x requires an IP address and no type, but got "${name}"${type === undefined ? "" : ` and type ${type}`}`,
    { remedy: "Give an address without -t." },
  );
}

/** Says what was taken for what where the words could mean the opposite; undefined where they cannot. */
export function orderNote(
  words: readonly string[],
  options: NameOptions,
  command: string,
  isContainer: (word: string) => boolean,
): string | undefined {
  const [name = "", container = "", ...others] = words;
  if (options.in !== undefined || others.length > 0 || name === container) return undefined;
  if (!isContainer(name)) return undefined;
  return `"${name}" is looked up in ${container}; for the other way: dns11 ${command} ${container} --in ${name}`;
}

/** The error for a last word that is not a container says so: the reader may have meant it as a name. */
export function withContainerHint(
  error: unknown,
  words: readonly string[],
  options: NameOptions,
  command: string,
): unknown {
  if (!(error instanceof Fault) || codeOf(error) !== "NO_SUCH_CONTAINER" || options.in !== undefined) return error;
  const remedy =
    `Without --in, the last word is the container. If all are names: dns11 ${command} ${words.join(" ")} --in CONTAINER. ` +
    "dns11 ps lists the containers.";
  return new Fault(error.code, error.message, { remedy });
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };
const DAY_MS = 86_400_000;

/** A time as people type it, such as 30s, 500ms or 2m, in milliseconds. */
export function readDuration(text: string): number {
  const [, number, unit] = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h)$/.exec(text) ?? [];
  const ms = Math.round(Number(number) * (UNITS[unit ?? ""] ?? Number.NaN));
  if (Number.isNaN(ms) || ms > DAY_MS)
    throw new InvalidArgumentError("Use a time of at most a day, such as 200ms, 30s or 2m.");
  return ms;
}
