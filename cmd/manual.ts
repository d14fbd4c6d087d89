/**
 * dns11 man: prints the manual pages and the example settings file, generated from the program's own commands, flags and
 * settings keys. The build of packages uses it, too.
 */
import { Argument, type Command } from "commander";

import { readBuild } from "./process/build.ts";
import { exampleSettings } from "./manual/keys.ts";
import { commandsMarkdown, exitCodesMarkdown, keysMarkdown } from "./manual/markdown.ts";
import { programPage } from "./manual/program-page.ts";
import { settingsPage } from "./manual/settings-page.ts";

const PAGES = {
  "dns11.8": programPage,
  "dns11.yaml.5": settingsPage,
  "dns11.yaml": exampleSettings,
  "commands.md": commandsMarkdown,
  "exit-codes.md": exitCodesMarkdown,
  "keys.md": keysMarkdown,
} as const;

export function addManual(program: Command): void {
  program
    .command("man")
    .summary("Print a manual page")
    .description("Print a manual page; to read it: dns11 man | man -l -")
    .addArgument(new Argument("[page]", "the page").choices(Object.keys(PAGES)).default("dns11.8"))
    .action((page: keyof typeof PAGES) => void process.stdout.write(PAGES[page](program, readBuild())));
}
