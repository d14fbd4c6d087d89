/**
 * dns11 man: its manual pages and an example of a settings file, written from what the program is: its commands and flags, the
 * keys of the settings file and what each of them takes. Packages are made with it (scripts/man.mjs), so it is not in the help.
 */
import { Argument, type Command } from "commander";

import { readBuild } from "./build.ts";
import { exampleSettings } from "./manual/example.ts";
import { programPage } from "./manual/program-page.ts";
import { settingsPage } from "./manual/settings-page.ts";

const PAGES = {
  "dns11.8": programPage,
  "dns11.yaml.5": settingsPage,
  "dns11.yaml": exampleSettings,
} as const;

export function addManual(program: Command): void {
  program
    .command("man", { hidden: true })
    .description("Print a manual page, to be shown with: dns11 man | man -l -")
    .addArgument(new Argument("[page]", "which one").choices(Object.keys(PAGES)).default("dns11.8"))
    .action((page: keyof typeof PAGES) => void process.stdout.write(PAGES[page](program, readBuild())));
}
