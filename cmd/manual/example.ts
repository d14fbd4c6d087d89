/**
 * The example settings file: every key with its default, commented out, so that the file changes nothing.
 */
import { settingsKeys, valueText } from "./keys.ts";

const HEAD = `# Settings of dns11, see dns11.yaml(5). Flags and environment variables take precedence over this file.
# Commented keys show their defaults. Check this file: dns11 check-config FILE. Reload it: dns11 reload, or SIGHUP.
version: 1
`;

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
