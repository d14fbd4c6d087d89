/**
 * Keys: every key of the settings file with what it means, what it takes and what counts where nobody says anything, read
 * from flags, readers and defaults.
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
  readonly does: string;
  /** What may be said, as a phrase; undefined where the meaning says it. */
  readonly takes: string | undefined;
  /** What counts by default, and under strict. */
  readonly byDefault: unknown;
  readonly underStrict: unknown;
  readonly flag: string | undefined;
  readonly variable: string | undefined;
}

/** What no key takes, to hear what it takes instead. */
const INVALID_VALUE = "?";

export function settingsKeys(program: Command): SettingsKey[] {
  const plain = mergeSettings([]).origins;
  const strict = mergeSettings([{ source: "file", values: { strict: true }, where: (key: Key) => key }]).origins;
  return (Object.keys(plain) as Key[]).map((key) => {
    const { flag, description = "" } = flagIn(program, key);
    const { description: does } = SWITCHES.find((each) => each.key === key) ?? {};
    return {
      key,
      does:
        does ??
        (KEY_DESCRIPTIONS as Partial<Record<Key, string>>)[key] ??
        description.replace(/ \([^)]*env: [^)]*\)$/, ""),
      takes: acceptedBy(key),
      byDefault: plain[key]?.value,
      underStrict: strict[key]?.value,
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

/** A reader that refuses something says what it would have taken. */
function acceptedBy(key: Key): string | undefined {
  const read = key in READERS ? READERS[key as keyof typeof READERS] : isMap(key) ? undefined : readBoolean;
  try {
    read?.(INVALID_VALUE);
  } catch (error) {
    return (error as Error).message
      .replace(/^"\?" is /, "")
      .replace(/^none of /, "one of ")
      .replace(/^neither true nor false$/, "true or false")
      .replace(/^neither (.+) nor /, "$1 or ")
      .replace(/^no (?:length of time|amount of memory) that fits: /, "")
      .replace(/^"\?" names /, "")
      .replace(/^no (?:filter|nodes|nameserver): it is /, "")
      .replace(/^no option that dns11 knows: /, "one of ")
      .replace(/^no (path|whole)/, "a $1");
  }
  return undefined;
}

function isMap(key: Key): boolean {
  return key === "networks";
}

/** As the settings file says it. */
export function valueText(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) return `[${value.map((each) => valueText(each)).join(", ")}]`;
  return typeof value === "string" ? value : JSON.stringify(value);
}
