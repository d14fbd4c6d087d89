/**
 * What all commands have in common that ask a running dns11: which one is meant, and how its answer is wanted.
 */
import type { Command } from "commander";

import type { ControlClient } from "../src/api/control-client.ts";
import { onThisPlatform } from "./platform.ts";
import { stateDirOption } from "./run.ts";

export interface ControlOptions {
  readonly host?: string;
  readonly stateDir: string;
  readonly json?: boolean;
}

export function addControlOptions(command: Command): Command {
  return command
    .option("-H, --host <address>", "the engine's socket, as the docker command reads it")
    .addOption(stateDirOption());
}

export function addJsonOption(command: Command): Command {
  return command.option("--json", "as JSON");
}

/** The running instance that is meant. */
export async function clientFor({ stateDir, host }: ControlOptions): Promise<ControlClient> {
  const { ControlClient: Asking, locateControl } = await onThisPlatform(async () => ({
    ...(await import("../src/api/locate.ts")),
    ...(await import("../src/api/control-client.ts")),
  }));
  return new Asking(await locateControl(stateDir, host));
}
