/**
 * Commands and flags listed by the program's help, which users see, so that completions, manual pages and documents can
 * be compared with it.
 */
import { dns11 } from "./dns11.ts";

export type CommandHelp = { readonly path: readonly string[]; readonly flags: readonly string[] };

/** The program itself first, then its commands and subcommands. */
export async function helpOfAll(path: readonly string[] = []): Promise<CommandHelp[]> {
  const { stdout } = await dns11([...path, "--help"]);
  const [options = "", commands = ""] = (stdout.split("\nOptions:\n")[1] ?? "").split("\nCommands:\n");
  const flags = [...options.matchAll(/^  (?:-\w, )?(--[\w-]+)/gm)].map(([, flag = ""]) => flag);
  const names = [...commands.matchAll(/^  ([a-z][\w-]*)/gm)].map(([, name = ""]) => name);
  const inner: CommandHelp[] = [];
  for (const name of names.filter((each) => each !== "help")) inner.push(...(await helpOfAll([...path, name])));
  return [{ path, flags }, ...inner];
}
