/**
 * Options shared by all commands that talk to a running dns11: which instance, and the output format.
 */
import { type Command, Option } from "commander";

import type { ControlClient } from "../../src/api/control-client.ts";
import { DEFAULT_STATE_DIR } from "../../src/api/state-paths.ts";
import { printable } from "../text/printable.ts";
import { onThisPlatform } from "../modules/platform.ts";

export interface ControlOptions {
  readonly host?: string;
  readonly stateDir: string;
  readonly json?: boolean;
}

export function addControlOptions(command: Command): Command {
  return command.addOption(hostOption()).addOption(stateDirOption());
}

export function hostOption(): Option {
  return new Option(
    "-H, --host <address>",
    "Docker's unix socket (unix:///PATH), as in docker -H; remote engines are not supported",
  );
}

export function stateDirOption(): Option {
  return new Option("--state-dir <path>", "state directory: lock, control socket, crash record")
    .default(DEFAULT_STATE_DIR, `${DEFAULT_STATE_DIR}; for a rootless engine: $XDG_RUNTIME_DIR/dns11`)
    .env("DNS11_STATE_DIR");
}

/** The formats of tables. */
export type Format = "wide" | "json";

/** `-o json` is what people type who know it from other programs. */
export function addJsonOption(command: Command, help = "print JSON"): Command {
  command.option("--json", `${help}; also: -o json`);
  return addOutput(command, new Option("-o, --output <format>").choices(["json"]).hideHelp());
}

/** For tables that can show more. */
export function addFormatOption(command: Command): Command {
  command.option("--json", "print JSON; also: -o json");
  return addOutput(command, new Option("-o, --output <format>", "wide: show more").choices(["wide", "json"]));
}

function addOutput(command: Command, option: Option): Command {
  return command.addOption(option).on(`option:${option.name()}`, (format: string) => {
    if (format === "json") command.setOptionValueWithSource("json", true, "cli");
  });
}

/** A client of the instance that the options select, or that runs as this process. */
export async function clientFor({ stateDir, host }: ControlOptions, pid?: number): Promise<ControlClient> {
  const {
    ControlClient: Client,
    locateControl,
    locateProcess,
  } = await onThisPlatform(async () => await import("../modules/client-modules.ts"));
  if (pid !== undefined) return new Client(await locateProcess(stateDir, pid));
  return new Client(await locateControl(stateDir, host, noteSilence));
}

/** On stderr: what the command prints is still what was asked for. */
export function noteSilence({ socketPath, isFound }: { readonly socketPath: string; readonly isFound: boolean }): void {
  const then = isFound
    ? "what follows is what dns11 knows without it"
    : "no dns11 is found that serves it, so it is waited for";
  process.stderr.write(`dns11: dockerd at ${printable(socketPath)} hangs: it answers nothing; ${then}\n`);
}
