/**
 * Keys: every key of the settings file with its description, accepted values and defaults, collected from flags, readers
 * and defaults.
 */
import type { Command } from "commander";

import { READERS, readBoolean } from "../../src/config/readers.ts";
import type { Key } from "../../src/config/settings-layer.ts";
import { SWITCHES } from "../../src/config/switches.ts";
import { mergeSettings } from "../../src/config/merge-settings.ts";
import { flagOf } from "../flags.ts";
import { KEY_DESCRIPTIONS } from "./descriptions.ts";

interface SettingsKey {
  readonly key: Key;
  readonly description: string;
  /** The accepted values, as a phrase; undefined if the description lists them. */
  readonly accepts: string | undefined;
  /** The defaults without and with --strict. */
  readonly defaultValue: unknown;
  readonly strictValue: unknown;
  readonly flag: string | undefined;
  readonly variable: string | undefined;
}

/** A value that no key accepts: its error message says what is accepted. */
const INVALID_VALUE = "?";

export function settingsKeys(program: Command): SettingsKey[] {
  const plain = mergeSettings([]).origins;
  const strict = mergeSettings([{ source: "file", values: { strict: true }, where: (key: Key) => key }]).origins;
  return (Object.keys(plain) as Key[]).map((key) => {
    const { flag, description = "" } = flagIn(program, key);
    const switched = SWITCHES.find((each) => each.key === key)?.description;
    return {
      key,
      description:
        switched ??
        (KEY_DESCRIPTIONS as Partial<Record<Key, string>>)[key] ??
        description.replace(/ \([^)]*env: [^)]*\)$/, ""),
      accepts: acceptedBy(key),
      defaultValue: plain[key]?.value,
      strictValue: strict[key]?.value,
      flag,
      variable: /env: (\w+)/.exec(description)?.[1],
    };
  });
}

function flagIn(program: Command, key: Key): { readonly flag: string | undefined; readonly description?: string } {
  const flag = flagOf(key);
  const run = program.commands.find((command) => command.name() === "run");
  const description = run?.options.find(({ long }) => long === flag)?.description;
  return { flag, ...(description !== undefined && { description }) };
}

/** What the reader of a key accepts, taken from the error message for an invalid value. */
function acceptedBy(key: Key): string | undefined {
  const read = key in READERS ? READERS[key as keyof typeof READERS] : isMap(key) ? undefined : readBoolean;
  try {
    read?.(INVALID_VALUE);
  } catch (error) {
    return /: use (.+)$/s.exec((error as Error).message)?.[1];
  }
  return undefined;
}

function isMap(key: Key): boolean {
  return key === "networks" || key === "records";
}

/** As in the settings file. */
export function valueText(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) return `[${value.map((each) => valueText(each)).join(", ")}]`;
  return typeof value === "string" ? value : JSON.stringify(value);
}
