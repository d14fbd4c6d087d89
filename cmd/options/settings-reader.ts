/**
 * SettingsReader: the settings of `dns11 run`, from flags, variables, the settings file, and folders that these name.
 */
import { readEnvironment, type SettingsLayer } from "../../src/config/layers.ts";
import { fingerprintOfFolder } from "../../src/config/file/files.ts";
import { namedFolders, readFolderLayers } from "../../src/config/file/folder-layers.ts";
import { readFolderInWorker, readSettingsInWorker } from "../../src/config/file/worker.ts";
import { mergeSettings } from "../../src/config/merge-settings.ts";
import type { RunSettings } from "../../src/config/settings.ts";
import type { ReadSettings } from "../../src/run/reloads.ts";
import { flagLayer } from "./flags.ts";

/** The options that the settings are made from, beside the flags of `flags.ts`. */
export interface SettingsOptions {
  readonly config?: string;
  readonly host?: string;
  readonly stateDir: string;
  readonly enginePid?: number;
  readonly replace?: boolean;
}

/** Returns a function that reads the settings: flags and environment only once, the file when everything is read. */
export function settingsReader(options: SettingsOptions): ReadSettings {
  const { host, stateDir, enginePid } = options;
  const config = options.config === "" ? undefined : options.config;
  const above = [flagLayer(options as unknown as Readonly<Record<string, unknown>>), readEnvironment(process.env)];
  let inForce: readonly SettingsLayer[] | undefined;
  return async (scope): Promise<RunSettings> => {
    const layers =
      scope === "folders" && inForce !== undefined
        ? inForce
        : config === undefined
          ? above
          : [...above, await readSettingsInWorker(config)];
    const folders = await namedFolders(layers, fingerprintOfFolder);
    const settings = mergeSettings([...layers, ...(await readFolderLayers(layers, readFolderInWorker))]);
    inForce = layers;
    return { ...settings, folders, host, stateDir, enginePid, isReplacing: options.replace === true, config };
  };
}
