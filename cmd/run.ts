/**
 * dns11 run: serves containers until it is stopped.
 */
import { type Command, InvalidArgumentError, Option } from "commander";
import { Fault } from "../src/base/lib/fault.ts";
import type { Log } from "../src/base/log/log.ts";
import type { Service } from "../src/run/service.ts";
import { addJsonOption, hostOption, stateDirOption } from "./options/control-options.ts";
import { addFlags, flagLayer } from "./options/flags.ts";
import { hostModules, onThisPlatform } from "./modules/platform.ts";
import { jsonLine } from "./text/printable.ts";
import { enterRootless } from "./process/rootless.ts";
import { abortOnSignal } from "./process/own-process.ts";
import { endOfService, isOwnServer } from "./process/own-server.ts";
import { addInNodeOptions, requireInNode, serveOnceInNode, undoInNode } from "./options/in-node.ts";
import { table } from "./text/table.ts";
import { mistypedVariables, readEnvironment, type SettingsLayer } from "../src/config/layers.ts";
import { fingerprintOfFolder } from "../src/config/file/files.ts";
import { namedFolders, readFolderLayers } from "../src/config/file/folder-layers.ts";
import { readFolderInWorker, readSettingsInWorker } from "../src/config/file/worker.ts";
import { mergeSettings } from "../src/config/merge-settings.ts";
import type { RunSettings } from "../src/config/settings.ts";
import type { ReadSettings } from "../src/run/reloads.ts";

interface RunOptions extends SettingsOptions {
  readonly with?: boolean;
  readonly dryRun?: boolean;
  readonly json?: boolean;
  readonly inNode?: boolean;
  readonly once?: boolean;
  readonly undo?: boolean;
}

export function addRun(program: Command): void {
  const command = program
    .command("run")
    .argument("[command...]", "with --with: the command")
    .summary("Serve DNS to containers")
    .description("Serve DNS at 127.0.0.11 in every container that uses Docker's embedded DNS, until stopped")
    .addOption(hostOption())
    .addOption(new Option("--config <file>", "settings file; SIGHUP reloads it").env("DNS11_CONFIG"))
    .option("--replace", "take over from the running dns11; no query is lost")
    .option("--with", "serve while a command runs, and exit with its code: dns11 run --with -- npm test")
    .option("--dry-run", "show what would be done with each container, and exit")
    .addOption(stateDirOption())
    .option("--engine-pid <pid>", "PID of dockerd, if it cannot be found through the socket", readPositive);
  addFlags(command);
  addInNodeOptions(command);
  addJsonOption(command, "with --dry-run: print JSON");
  command.action(async (words: readonly string[], options: RunOptions) => {
    requireInNode(command);
    if (words.length > 0 && (options.with !== true || options.inNode === true)) throw unexpected(words[0], options);
    await (options.inNode === true ? runInNode(options) : run(words, options));
  });
}

function unexpected(word: string | undefined, { inNode }: RunOptions): Fault {
  const remedy =
    inNode === true
      ? "Inside a node dns11 serves on its own: leave the command out."
      : "To serve while a command runs: dns11 run --with -- COMMAND";
  return new Fault("USAGE", `Unexpected argument "${word}"`, { remedy });
}

/** Inside a KIND node, where there is no engine. */
async function runInNode(options: RunOptions): Promise<void> {
  if (options.undo === true) return await undoInNode(options.stateDir);
  const readSettings = settingsReader(options);
  const settings = await readSettings("all");
  const { createLog, findNode, loadFeatures, Service } = await hostModules();
  const log = createLog(settings.logLevel, settings.logFormat);
  warnOfVariables(log);
  if (options.once === true) return await serveOnceInNode(settings, log);
  await serveUntilSignalled(new Service(settings, log, readSettings, findNode, await loadFeatures()));
}

async function run(words: readonly string[], options: RunOptions): Promise<void> {
  const isServing = options.dryRun !== true;
  if (isServing && options.with === true && !isOwnServer()) {
    const { runWith } = await import("./run-with.ts");
    process.exitCode = await runWith(words, options);
    return;
  }
  await enterRootless(options);
  const readSettings = settingsReader(options);
  const settings = await readSettings("all");
  const { restartIfNeeded } = await onThisPlatform(async () => await import("../src/run/restart.ts"));
  const excess = isServing ? restartIfNeeded(settings) : [];
  const { createLog, findEngine, loadFeatures, preview, Service } = await hostModules();
  // The output is the command's.
  const level = options.with === true && settings.logLevel === "info" ? "warn" : settings.logLevel;
  const log = createLog(level, settings.logFormat);
  warnOfVariables(log);
  if (excess.length > 0) log.warn({ excess }, "cannot drop these capabilities, although they are not needed");
  if (!isServing) {
    const containers = await preview(settings, log, await loadFeatures());
    process.stdout.write(options.json === true ? jsonLine(containers) : previewText(containers));
    return;
  }
  const service = new Service(settings, log, readSettings, findEngine, await loadFeatures());
  await (options.with === true ? service.run(endOfService()) : serveUntilSignalled(service));
}

function warnOfVariables(log: Pick<Log, "warn">): void {
  for (const [variable, meant] of Object.entries(mistypedVariables(process.env)))
    log.warn({ variable, meant }, "a variable of the environment has no meaning");
}

/** SIGHUP reloads the settings and SIGUSR2 replaces the process; the result is in the log. */
async function serveUntilSignalled(service: Service): Promise<void> {
  process.on("SIGHUP", () => void service.reload().catch(() => undefined));
  process.on("SIGUSR2", () => service.replace());
  await service.run(abortOnSignal());
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
    state === "skipped" ? "skip" : "serve",
    networks.join(","),
    [reason, warning].filter(Boolean).join("; "),
  ]);
  return table(["CONTAINER", "ACTION", "NETWORKS", "WHY"], rows);
}

function readPositive(text: string): number {
  if (!/^[1-9]\d{0,9}$/.test(text)) throw new InvalidArgumentError("Use a process ID.");
  return Number(text);
}

/** The options that the settings are made from, beside the flags of `flags.ts`. */
interface SettingsOptions {
  readonly config?: string;
  readonly host?: string;
  readonly stateDir: string;
  readonly enginePid?: number;
  readonly replace?: boolean;
}

/** Returns a function that reads the settings: flags and environment only once, the file when everything is read. */
function settingsReader(options: SettingsOptions): ReadSettings {
  const { host, stateDir, enginePid } = options;
  const config = options.config === "" ? undefined : options.config;
  const above = [flagLayer(options as unknown as Readonly<Record<string, unknown>>), readEnvironment(process.env)];
  const layersOf = new WeakMap<RunSettings, readonly SettingsLayer[]>();
  return async (scope, inForce): Promise<RunSettings> => {
    const known = scope === "folders" && inForce !== undefined ? layersOf.get(inForce) : undefined;
    const layers = known ?? (config === undefined ? above : [...above, await readSettingsInWorker(config)]);
    const folders = await namedFolders(layers, fingerprintOfFolder);
    const settings = mergeSettings([...layers, ...(await readFolderLayers(layers, readFolderInWorker))]);
    const read = { ...settings, folders, host, stateDir, enginePid, isReplacing: options.replace === true, config };
    layersOf.set(read, layers);
    return read;
  };
}
