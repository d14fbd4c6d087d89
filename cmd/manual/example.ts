/**
 * The example of a settings file: every key with its default, none of them said, so that it changes nothing.
 */
import type { Command } from "commander";

import { settingsKeys, valueText } from "./keys.ts";

const HEAD = `# Settings of dns11, see dns11.yaml(5). What is said here counts after flags and environment; what is not said has the
# default that stands here behind a "#". Say whether it is good: dns11 check-config FILE. Have it read again: SIGHUP.
version: 1
`;

export function exampleSettings(program: Command): string {
  const lines: string[] = [];
  let map = "";
  for (const { key, does, byDefault } of settingsKeys(program)) {
    const [first = "", ...rest] = key.split(".");
    if (rest.length > 0 && first !== map) lines.push(`#${first}:`);
    map = rest.length > 0 ? first : "";
    const indent = rest.length > 0 ? "  " : "";
    const value = valueText(byDefault);
    lines.push(`#${indent}${rest.join(".") || first}:${value === "" ? "" : ` ${value}`} # ${does}`);
  }
  return `${HEAD}${lines.join("\n")}\n`;
}
