/**
 * Commands and flags listed by the program's help, which users see, so that completions, manual pages and documents can
 * be compared with it.
 */
import { dns11 } from "./dns11.ts";

export type CommandHelp = {
  readonly path: readonly string[];
  readonly flags: readonly string[];
  /** The command lines that the help begins with. */
  readonly examples: readonly string[];
};

/** A help text of the page that holds them all, in the form of docs/cli.md. */
const HELP = /^```text dns11((?: \S+)*) --help\n([\s\S]*?)^```$/gm;

/** The program itself first, then its commands and subcommands. One process prints them all. */
export async function helpOfAll(): Promise<CommandHelp[]> {
  const { stdout } = await dns11(["man", "commands.md"]);
  return [...stdout.matchAll(HELP)].map(([, words = "", text = ""]) => {
    const [, lists = ""] = text.split("\nOptions:\n");
    const [, examples = ""] = /^Examples:\n([\s\S]*?)\n\n/.exec(text) ?? [];
    return {
      path: words.split(" ").slice(1),
      flags: [...lists.matchAll(/^  (?:-\w, )?(--[\w-]+)/gm)].map(([, flag = ""]) => flag),
      examples: examples.split("\n").map((line) => line.trim().replace(/ {2,}.*/, "")),
    };
  });
}
