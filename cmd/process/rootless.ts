/**
 * Rootless: what differs where a normal user has a Docker engine of their own: the default state directory, and that
 * commands which look into containers enter the engine's namespaces first.
 */
import { resolve } from "node:path";
import type { Command } from "commander";

import { defaultStateDir } from "../../src/api/state-paths.ts";
import type { RootlessOptions } from "../../src/run/rootless/enter.ts";
import { onThisPlatform } from "../modules/platform.ts";

/** Sets the state directory of every command that has one: an empty variable sets none, and sockets need a path from the root. */
export function addStateDirs(program: Command): void {
  program.hook("preAction", (_, command) => {
    const { host, stateDir } = command.opts<{ readonly host?: string; readonly stateDir?: string }>();
    if (stateDir === undefined) return;
    const source = command.getOptionValueSource("stateDir");
    if (source === "default" || stateDir === "")
      command.setOptionValueWithSource("stateDir", defaultStateDir(host), "default");
    else command.setOptionValueWithSource("stateDir", resolve(stateDir), source);
  });
}

/** Executes the command again inside the user's rootless engine; returns where there is nothing to enter. */
export async function enterRootless(options: RootlessOptions): Promise<void> {
  const { enterRootlessEngine } = await onThisPlatform(async () => await import("../../src/run/rootless/enter.ts"));
  enterRootlessEngine(options);
}
