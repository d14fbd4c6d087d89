/**
 * Options shared by all commands that talk to a running dns11: which instance, and the output format.
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
    .option(
      "-H, --host <address>",
      "Docker's unix socket (unix:///PATH), as in docker -H; remote engines are not supported",
    )
    .addOption(stateDirOption());
}

export function addJsonOption(command: Command): Command {
  return command.option("--json", "print JSON");
}

/** A client of the instance that the options select. */
export async function clientFor({ stateDir, host }: ControlOptions): Promise<ControlClient> {
  const { ControlClient: Client, locateControl } = await onThisPlatform(
    async () => await import("./client-modules.ts"),
  );
  return new Client(await locateControl(stateDir, host));
}
