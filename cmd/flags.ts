/**
 * Flags: the flags of `dns11 run` that correspond to keys of the settings file.
 */
import { type Command, InvalidArgumentError, Option } from "commander";

import { NO_SEARCH } from "../src/config/dns-option.ts";
import { variableOf } from "../src/config/environment.ts";
import { mergeSettings } from "../src/config/merge-settings.ts";
import type { SettingsLayer } from "../src/config/settings-layer.ts";
import type { AnySetting } from "../src/config/setting.ts";
import { type Key, type PlainKey, SETTINGS } from "../src/config/settings-table.ts";
import { SWITCHES } from "../src/config/switches.ts";

const DEFAULTS = mergeSettings([]).origins;
const SWITCH_GROUP = "Differences from Docker (--strict turns all of them off):";

const FLAGS = new Map(
  Object.entries(SETTINGS as Readonly<Record<string, AnySetting>>).flatMap(([key, { flag }]) =>
    flag === undefined ? [] : [[key as PlainKey, flag] as const],
  ),
);

/** The flags that apply without an engine. */
export const IN_NODE_FLAGS: readonly PlainKey[] = [
  "strict",
  "dns",
  "dns-opt",
  "ttl",
  "kind.ip",
  "kind.mode",
  "rule-backend",
  "keeper",
  "queries.names",
  "queries.log",
  "log-level",
  "log-format",
];

/** Adds all flags, or those of some keys. */
export function addFlags(command: Command, keys: Iterable<PlainKey> = FLAGS.keys()): void {
  for (const key of keys) command.addOption(optionOf(key));
  command.addOption(new Option("--dns-search <domain>").argParser(rejectDnsSearch).hideHelp());
}

function optionOf(key: PlainKey): Option {
  const { help, kind, form } = SETTINGS[key] as AnySetting;
  const { flag = key, preset } = FLAGS.get(key) ?? {};
  const option = new Option(`--${flag}`, `${help} ${noteOf(key)}`);
  if (!/[<[]/.test(flag)) return option;
  option.argParser<unknown>((text, before) => {
    const value = readOrReject((word) => kind.read(word), text);
    return form === "one" ? value : [...((before as readonly unknown[] | undefined) ?? []), value];
  });
  return preset === undefined ? option : option.preset(preset);
}

/** The default of a value, and the variable. */
function noteOf(key: PlainKey): string {
  const { form, fallback } = SETTINGS[key] as AnySetting;
  const variable = `env: ${variableOf(key)}`;
  if (form !== "one") return `(repeatable, ${variable})`;
  const value = DEFAULTS[key]?.value;
  return typeof fallback === "boolean" || value === null
    ? `(${variable})`
    : `(default: ${JSON.stringify(value)}, ${variable})`;
}

/** A pair of flags for every switch: `--no-NAME` in the help, and `--NAME`, which strict mode needs. */
export function addSwitches(command: Command): void {
  for (const { name, description, negation } of SWITCHES) {
    command.addOption(new Option(`--${name}`, description).hideHelp());
    command.addOption(new Option(`--no-${name}`, negation).helpGroup(SWITCH_GROUP));
  }
}

/** The layer of the settings given as flags. */
export function flagLayer(options: Readonly<Record<string, unknown>>): SettingsLayer {
  const keys = [...FLAGS.keys(), ...SWITCHES.map(({ key }) => key)];
  const values = keys.map((key) => [key, options[new Option(flagOf(key) ?? "").attributeName()]] as const);
  return {
    source: "flag",
    values: Object.fromEntries(values.filter(([, value]) => value !== undefined)),
    where: (key: Key) => flagOf(key) ?? key,
  };
}

/** The flag of a key, with its dashes. */
export function flagOf(key: Key): string | undefined {
  const [name] = FLAGS.get(key as PlainKey)?.flag.split(" ") ?? [];
  const flag = name ?? SWITCHES.find((each) => each.key === key)?.name;
  return flag === undefined ? undefined : `--${flag}`;
}

function readOrReject(read: (text: string) => unknown, text: string): unknown {
  try {
    return read(text);
  } catch (error) {
    // Commander has quoted the value before: only what to use is left.
    const message = (error as Error).message.replace(/^invalid .*?: (use .*)$/s, "$1");
    throw new InvalidArgumentError(`${message.charAt(0).toUpperCase()}${message.slice(1)}.`);
  }
}

function rejectDnsSearch(): never {
  throw new InvalidArgumentError(`Not supported: ${NO_SEARCH}.`);
}
