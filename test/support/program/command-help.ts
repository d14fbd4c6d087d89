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

/** The program itself first, then its commands and subcommands. */
export async function helpOfAll(path: readonly string[] = []): Promise<CommandHelp[]> {
  let { stdout } = await dns11([...path, "--help"]);
  if (stdout.includes("--help-all")) ({ stdout } = await dns11([...path, "--help-all"]));
  const [, lists = ""] = stdout.split("\nOptions:\n");
  const flags = [...lists.matchAll(/^  (?:-\w, )?(--[\w-]+)/gm)].map(([, flag = ""]) => flag);
  const names = [...lists.matchAll(/^  ([a-z][\w-]*)/gm)].map(([, name = ""]) => name);
  const [, example = ""] = /^Examples:\n([\s\S]*?)\n\n/.exec(stdout) ?? [];
  const examples = example.split("\n").map((line) => line.trim().replace(/ {2,}.*/, ""));
  const inner: CommandHelp[] = [];
  for (const name of names.filter((each) => each !== "help")) inner.push(...(await helpOfAll([...path, name])));
  return [{ path, flags, examples }, ...inner];
}
