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

const pages = new Map<string, Promise<string>>();

/** A page as `dns11 man` prints it: one process for each, however many tests read it. */
export async function manualPage(name: string): Promise<string> {
  const page = pages.get(name) ?? dns11(["man", name]).then(({ stdout }) => stdout);
  pages.set(name, page);
  return await page;
}

/** The program itself first, then its commands and subcommands. */
export async function helpOfAll(): Promise<CommandHelp[]> {
  return [...(await manualPage("commands.md")).matchAll(HELP)].map(([, words = "", text = ""]) => {
    const [, lists = ""] = text.split("\nOptions:\n");
    const [, examples = ""] = /^Examples:\n([\s\S]*?)\n\n/.exec(text) ?? [];
    return {
      path: words.split(" ").slice(1),
      flags: [...lists.matchAll(/^  (?:-\w, )?(--[\w-]+)/gm)].map(([, flag = ""]) => flag),
      examples: examples.split("\n").map((line) => line.trim().replace(/ {2,}.*/, "")),
    };
  });
}
