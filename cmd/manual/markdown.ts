/**
 * Markdown: the parts of docs/cli.md and docs/configuration.md that the program knows: every command with its help, every key
 * of the settings file, every exit code. scripts/docs.mjs puts them there.
 */
import type { Command } from "commander";

import { EXIT } from "../process/exit-code.ts";
import { commandsOf } from "../shell/complete.ts";
import { settingsKeys, valueText } from "./keys.ts";
import { EXIT_DESCRIPTIONS } from "./descriptions.ts";

const HELP_WIDTH = 80;

export function commandsMarkdown(program: Command): string {
  const all = named(program, []);
  const rows = all
    .filter(({ path }) => path.length === 2)
    .map(({ path, command }) => [`[\`${path.join(" ")}\`](#${path.join("-")})`, command.description()]);
  const sections = all.map(({ path, command }) => {
    const heading = path.length === 1 ? `## ${path.join(" ")}` : `### ${path.join(" ")}`;
    return `${heading}\n\n\`\`\`text ${path.join(" ")} --help\n${helpOf(command).trimEnd()}\n\`\`\`\n`;
  });
  return `${markdownTable(["Command", "Purpose"], rows)}\n${sections.join("\n")}`;
}

export function exitCodesMarkdown(): string {
  const rows = Object.entries(EXIT).map(([name, code]) => [String(code), EXIT_DESCRIPTIONS[name as keyof typeof EXIT]]);
  return markdownTable(["Code", "When"], rows);
}

export function keysMarkdown(): string {
  const rows = settingsKeys().map(({ key, description, accepts, defaultValue, strictValue, flag, variable }) => {
    const [usual, strict] = [valueText(defaultValue), valueText(strictValue)];
    const isOtherwise = usual !== strict && key !== "strict";
    return [
      `\`${key}\``,
      description,
      acceptsText(description, accepts),
      `${usual === "" ? "" : `\`${usual}\``}${isOtherwise ? `, strict: \`${strict}\`` : ""}`,
      [flag, variable].flatMap((each) => (each === undefined ? [] : [`\`${each}\``])).join(", "),
    ];
  });
  return markdownTable(["Key", "Meaning", "Accepts", "Default", "Flag, variable"], rows);
}

/** Without words that the description lists, and without the examples of times and sizes that the page has above the table. */
function acceptsText(description: string, accepts = ""): string {
  const [, listed] = /^one of (.+)$/.exec(accepts) ?? [];
  if (listed?.split(", ").every((word) => new RegExp(`\\b${word}\\b`).test(description)) === true) return "";
  return (listed ?? accepts).replace(/^(?:an?|the) /, "").replace(/, such as (?:30s or 5m|250ms or 30s|32MiB)$/, "");
}

/** A command and all commands below it, each with the words that are typed for it. */
function named(command: Command, parents: readonly string[]): { readonly path: string[]; readonly command: Command }[] {
  const path = [...parents, command.name()];
  const inner = commandsOf(command).filter((each) => each.name() !== "help");
  return [{ path, command }, ...inner.flatMap((each) => named(each, path))];
}

/** As `--help` prints it where there is no terminal. */
function helpOf(command: Command): string {
  let text = "";
  command.configureOutput({ writeOut: (part) => void (text += part), getOutHelpWidth: () => HELP_WIDTH });
  command.outputHelp();
  return text;
}

function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => "---"), ...rows.map((cells) => cells.map((cell) => cell.replaceAll("|", "\\|")))]
    .map((cells) => `| ${cells.join(" | ")} |\n`)
    .join("");
}
