/**
 * Keys: every key of the settings file with its description, accepted values and defaults, as the settings declare them.
 */
import { mergeSettings } from "../../src/config/merge-settings.ts";
import { type Key, MAP_HELP, type PlainKey, SETTINGS, isForStart, isPlain } from "../../src/config/keys.ts";
import { variableOf } from "../../src/config/setting.ts";
import { flagOf } from "../options/flags.ts";
import type { EXIT } from "../process/exit-code.ts";

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

/** Descriptions of the exit codes, for the manual. */
export const EXIT_DESCRIPTIONS: Readonly<Record<keyof typeof EXIT, string>> = {
  ok: "Success. For run: stopped by a signal, all containers handed back.",
  failure:
    "The operation failed, or there is no running dns11 to query; a doctor command found a problem; explain --fail found a name that does not resolve.",
  usage:
    "The command line, the environment or the settings file is invalid; there is no such container, node or project.",
  cannotServe: "dns11 cannot work here: capabilities, kernel, platform, or an engine whose namespaces are elsewhere.",
  locked: "Another instance already serves this engine.",
  unchecked: "A doctor command found nothing wrong, and some checks could not be done.",
  noReply: "A lookup got no reply.",
};

const HEAD = `# Settings of dns11, see dns11.yaml(5). Flags and environment variables take precedence over this file.
# Commented keys show their defaults. Check this file: dns11 check-config FILE. Reload it: dns11 reload, or SIGHUP.
version: 1
`;

/** The example settings file: every key with its default, commented out, so that the file changes nothing. */
export function exampleSettings(): string {
  const lines: string[] = [];
  let map = "";
  for (const { key, description, defaultValue } of settingsKeys()) {
    const [first = "", ...rest] = key.split(".");
    if (rest.length > 0 && first !== map) lines.push(`#${first}:`);
    map = rest.length > 0 ? first : "";
    const indent = rest.length > 0 ? "  " : "";
    const value = valueText(defaultValue);
    lines.push(`#${indent}${rest.join(".") || first}:${value === "" ? "" : ` ${value}`} # ${description}`);
  }
  return `${HEAD}${lines.join("\n")}\n`;
}
