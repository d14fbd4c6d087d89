/**
 * dns11 run: serves until it is told to stop.
 */
import { type Command, InvalidArgumentError, Option } from "commander";

import { readEnvironment } from "../src/config/environment.ts";
import { readSettingsInWorker } from "../src/config/file/apart.ts";
import { DEFAULT_STATE_DIR, type RunSettings } from "../src/config/settings.ts";
import { mergeSettings } from "../src/config/merge-settings.ts";
import type { Service } from "../src/run/service.ts";
import { createLog } from "../src/base/log/log.ts";
import { addFlags, addSwitches, flagLayer } from "./flags.ts";
import { onThisPlatform } from "./platform.ts";
import { table } from "./table.ts";

/** What settings are made from. */
export interface SettingsOptions {
  readonly config?: string;
  readonly host?: string;
  readonly stateDir: string;
  readonly enginePid?: number;
  readonly batch?: boolean;
  readonly replace?: boolean;
}

interface RunOptions extends SettingsOptions {
  readonly dryRun?: boolean;
  readonly json?: boolean;
}

export function addRun(program: Command): void {
  const command = program
    .command("run")
    .description("Serve names on 127.0.0.11 in every container that has Docker's resolver, until told to stop")
    .addOption(new Option("-H, --host <address>", "the engine's socket, as the docker command reads it"))
    .addOption(new Option("--config <file>", "the settings file; SIGHUP reads it again").env("DNS11_CONFIG"))
    .option("--replace", "take over from the one that serves: no query is lost")
    .option("--dry-run", "say what would be done with each container, and do nothing")
    .option("--json", "with --dry-run: as JSON")
    .addOption(stateDirOption())
    .option("--engine-pid <pid>", "the engine's process, where its socket does not tell", readPositive);
  addFlags(command);
  addSwitches(command);
  command.option("--no-batch", "answer each packet by itself (for comparison)");
  command.action(async (options: RunOptions) => await run(options));
}

export function stateDirOption(): Option {
  return new Option("--state-dir <path>", "where lock and control socket live")
    .default(DEFAULT_STATE_DIR)
    .env("DNS11_STATE_DIR");
}

async function run(options: RunOptions): Promise<void> {
  const readSettings = settingsReader(options);
  const settings = await readSettings();
  const isServing = options.dryRun !== true;
  const { dropUnneededCapabilities: limitToNeeded } = await onThisPlatform(
    async () => await import("../src/run/drop-capabilities.ts"),
  );
  const excess = isServing ? limitToNeeded(settings) : [];
  const { findEngine, preview, Service } = await onThisPlatform(async () => ({
    ...(await import("../src/run/engine/engine-target.ts")),
    ...(await import("../src/run/service.ts")),
  }));
  const log = createLog(settings.logLevel, settings.logFormat);
  if (excess.length > 0) log.warn({ excess }, "these capabilities are not needed, and cannot be given up");
  if (!isServing) {
    const containers = await preview(settings, log);
    process.stdout.write(options.json === true ? `${JSON.stringify(containers)}\n` : previewText(containers));
    return;
  }
  await serveUntilSignalled(new Service(settings, log, readSettings, findEngine));
}

/** SIGHUP has the settings read again, SIGUSR2 the process replaced; what comes of it stands in the log. */
export async function serveUntilSignalled(service: Service): Promise<void> {
  process.on("SIGHUP", () => void service.reload().catch(() => undefined));
  process.on("SIGUSR2", () => service.replace());
  await service.run(abortOnSignal());
}

/** Flags and environment stay as they were at the start; the file is read anew each time. */
export function settingsReader(options: SettingsOptions): () => Promise<RunSettings> {
  const { host, stateDir, enginePid } = options;
  const config = options.config === "" ? undefined : options.config;
  const layers = [flagLayer(options as unknown as Readonly<Record<string, unknown>>), readEnvironment(process.env)];
  return async () => {
    const settings = mergeSettings(config === undefined ? layers : [...layers, await readSettingsInWorker(config)]);
    return {
      ...settings,
      host,
      stateDir,
      enginePid,
      isBatching: options.batch !== false,
      isReplacing: options.replace === true,
      config,
    };
  };
}

/** The first SIGTERM or SIGINT asks for a good end; a second one does not wait for it. */
export function abortOnSignal(): AbortSignal {
  const controller = new AbortController();
  const onSignal = (): void => {
    if (controller.signal.aborted) process.exit(1);
    controller.abort();
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
  return controller.signal;
}

function previewText(
  containers: readonly {
    readonly name: string;
    readonly state: string;
    readonly reason?: string;
    readonly warning?: string;
    readonly networks: readonly string[];
  }[],
): string {
  const rows = containers.map(({ name, state, reason, warning, networks }) => [
    name,
    state === "skipped" ? "leave alone" : "serve",
    networks.join(","),
    [reason, warning].filter(Boolean).join("; "),
  ]);
  return table(["CONTAINER", "WOULD", "NETWORKS", "WHY"], rows);
}

function readPositive(text: string): number {
  if (!/^[1-9]\d{0,9}$/.test(text)) throw new InvalidArgumentError("It is a process number.");
  return Number(text);
}
