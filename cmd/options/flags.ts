/**
 * Flags: the flags of `dns11 run` that correspond to keys of the settings file: those that people type by hand. For the others
 * the error says where they are set.
 */
import { type Command, InvalidArgumentError, Option } from "commander";

import type { SettingsLayer } from "../../src/config/layers.ts";
import { mergeSettings } from "../../src/config/merge-settings.ts";
import { NOT_SETTINGS_NAMES, whyNoSetting } from "../../src/config/kinds.ts";
import { type AnySetting, variableOf } from "../../src/config/setting.ts";
import { type Key, type PlainKey, SETTINGS } from "../../src/config/keys.ts";

const DEFAULTS = mergeSettings([]).origins;

const FLAGS = new Map(
  Object.entries(SETTINGS as Readonly<Record<string, AnySetting>>).flatMap(([key, { flag }]) =>
    flag === undefined ? [] : [[key as PlainKey, flag] as const],
  ),
);

export function addFlags(command: Command): void {
  for (const key of FLAGS.keys()) command.addOption(optionOf(key));
  const others = (Object.keys(SETTINGS) as PlainKey[]).filter((key) => !FLAGS.has(key));
  for (const key of others)
    refuse(command, key.replaceAll(".", "-"), `set ${variableOf(key)}, or ${key} in the settings file`);
  for (const name of NOT_SETTINGS_NAMES) refuse(command, name, whyNoSetting(name) ?? "");
}

function refuse(command: Command, name: string, instead: string): void {
  command.addOption(new Option(`--${name} [value]`).hideHelp());
  command.on(`option:${name}`, () =>
    command.error(`error: there is no flag '--${name}': ${instead}`, { code: "commander.unknownOption" }),
  );
}

function optionOf(key: PlainKey): Option {
  const { help, kind, each } = SETTINGS[key] as AnySetting;
  const { flag = key, preset } = FLAGS.get(key) ?? {};
  const option = new Option(`--${flag}`, `${help} ${noteOf(key)}`);
  if (!/[<[]/.test(flag)) return option;
  option.argParser<unknown>((text, before) => {
    const value = readOrReject((word) => (each ?? kind).read(word), text);
    return each === undefined ? value : [...((before as readonly unknown[] | undefined) ?? []), value];
  });
  return preset === undefined ? option : option.preset(preset);
}

/** The default of a value, and the variable. */
function noteOf(key: PlainKey): string {
  const { each, fallback } = SETTINGS[key] as AnySetting;
  const variable = `env: ${variableOf(key)}`;
  if (each !== undefined) return `(repeatable, ${variable})`;
  const value = DEFAULTS[key]?.value;
  return typeof fallback === "boolean" || value === null
    ? `(${variable})`
    : `(default: ${JSON.stringify(value)}, ${variable})`;
}

/** The layer of the settings given as flags. */
export function flagLayer(options: Readonly<Record<string, unknown>>): SettingsLayer {
  const values = [...FLAGS.keys()].map((key) => [key, options[attributeOf(key)]] as const);
  return {
    source: "flag",
    values: Object.fromEntries(values.filter(([, value]) => value !== undefined)),
    where: (key: Key) => flagOf(key) ?? key,
  };
}

/** The flag of a key, with its dashes. */
export function flagOf(key: Key): string | undefined {
  const [name] = FLAGS.get(key as PlainKey)?.flag.split(" ") ?? [];
  return name === undefined ? undefined : `--${name}`;
}

function attributeOf(key: PlainKey): string {
  return new Option(flagOf(key) ?? "").attributeName();
}

/** The value of a text, or the error of the command line that says what to use. */
export function readOrReject<T>(read: (text: string) => T, text: string): T {
  try {
    return read(text);
  } catch (error) {
    // Commander has quoted the value before: only what to use is left.
    const message = (error as Error).message.replace(/^invalid .*?: (use .*)$/s, "$1");
    throw new InvalidArgumentError(`${message.charAt(0).toUpperCase()}${message.slice(1)}.`);
  }
}
