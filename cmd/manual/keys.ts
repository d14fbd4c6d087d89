/**
 * Keys: every key of the settings file with its description, accepted values and defaults, as the settings declare them.
 */
import { variableOf } from "../../src/config/layers.ts";
import { mergeSettings } from "../../src/config/merge-settings.ts";
import { type Key, MAP_HELP, type PlainKey, SETTINGS, isForStart, isPlain } from "../../src/config/keys.ts";
import { flagOf } from "../options/flags.ts";

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

export function settingsKeys(): SettingsKey[] {
  const plain = mergeSettings([]).origins;
  const strict = mergeSettings([{ source: "file", values: { strict: true }, where: (key: Key) => key }]).origins;
  return (Object.keys(plain) as Key[]).map((key) => ({
    key,
    description: isPlain(key) ? helpOf(key) : MAP_HELP[key],
    accepts: acceptedBy(key),
    defaultValue: plain[key]?.value,
    strictValue: strict[key]?.value,
    flag: flagOf(key),
    variable: isPlain(key) ? variableOf(key) : undefined,
  }));
}

function helpOf(key: PlainKey): string {
  return `${SETTINGS[key].help}${isForStart(key) ? "; takes effect at the next start" : ""}`;
}

/** What the reader of a key accepts, taken from the error message for an invalid value. */
function acceptedBy(key: Key): string | undefined {
  if (!isPlain(key)) return undefined;
  try {
    SETTINGS[key].kind.read(INVALID_VALUE);
  } catch (error) {
    return /: use (.+)$/s.exec((error as Error).message)?.[1];
  }
  return undefined;
}

/** As in the settings file. */
export function valueText(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) return `[${value.map((each) => valueText(each)).join(", ")}]`;
  return typeof value === "string" ? value : JSON.stringify(value);
}
