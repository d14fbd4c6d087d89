/**
 * Rootless: what differs where a normal user has a Docker engine of their own: the default state directory, and that
 * commands which look into containers enter the engine's namespaces first.
 */
import type { Command } from "commander";

import { defaultStateDir } from "../../src/api/state-paths.ts";
import type { RootlessOptions } from "../../src/run/rootless/enter.ts";
import { onThisPlatform } from "../modules/platform.ts";

/** Sets the state directory of every command that has one and was given none. */
export function addRootlessDefaults(program: Command): void {
  program.hook("preAction", (_, command) => {
    if (command.getOptionValueSource("stateDir") !== "default") return;
    const { host } = command.opts<{ readonly host?: string }>();
    command.setOptionValueWithSource("stateDir", defaultStateDir(host), "default");
  });
}

/** Executes the command again inside the user's rootless engine; returns where there is nothing to enter. */
export async function enterRootless(options: RootlessOptions): Promise<void> {
  const { enterRootlessEngine } = await onThisPlatform(async () => await import("../../src/run/rootless/enter.ts"));
  enterRootlessEngine(options);
}
