/**
 * Markdown: the parts of docs/cli.md and docs/configuration.md that the program knows: every command with its help, every key
 * of the settings file, every exit code. scripts/docs.mjs puts them there.
 */
import type { Command } from "commander";

import { EXIT } from "../process/exit-code.ts";
import { commandsOf } from "../shell/complete.ts";
import { settingsKeys, valueText, EXIT_DESCRIPTIONS } from "./keys.ts";

const HELP_WIDTH = 80;

export function commandsMarkdown(program: Command): string {
  const sections = named(program, []).map(({ path, command }) => {
    const heading = path.length === 1 ? `## ${path.join(" ")}` : `### ${path.join(" ")}`;
    return `${heading}\n\n\`\`\`text ${path.join(" ")} --help\n${helpOf(command).trimEnd()}\n\`\`\`\n`;
  });
  return sections.join("\n");
}

export function exitCodesMarkdown(): string {
  const rows = Object.entries(EXIT).map(([name, code]) => [String(code), EXIT_DESCRIPTIONS[name as keyof typeof EXIT]]);
  return markdownTable(["Code", "When"], rows);
}

/** Without variables, whose names follow from those of the keys. */
export function keysMarkdown(): string {
  const rows = settingsKeys().map(({ key, description, accepts, defaultValue, strictValue, flag }) => {
    const [usual, strict] = [valueText(defaultValue), valueText(strictValue)];
    const isOtherwise = usual !== strict && key !== "strict";
    const defaults = [...(usual === "" ? [] : [`\`${usual}\``]), ...(isOtherwise ? [`strict: \`${strict}\``] : [])];
    const accepted = acceptsText(description, accepts);
    return [
      [key, flag].flatMap((each) => (each === undefined ? [] : [`\`${each}\``])).join(", "),
      description.replace("takes effect at the next start", "at the next start"),
      [defaults.join(", "), accepted].filter((each) => each !== "").join("; "),
    ];
  });
  return markdownTable(["Key, flag", "Meaning", "`Default`; accepts"], rows);
}

/** Without what the description or the default shows, and without examples and units: the page has them above the table. */
function acceptsText(description: string, accepts = ""): string {
  if (accepts === "true or false") return "";
  const short = accepts
    .replace(/^one of /, "")
    .replace(/label=KEY(?:, | or )label=KEY=VALUE/, "label=KEY[=VALUE]")
    .replace(/^(?:an?|the) /, "")
    .replace(/(?:\btime|\bwhole number|\bwhole seconds|\ba size) from /, "")
    .replace(/, such as [^,]+/, "");
  const listed = ` ${description.replaceAll(/[;,()]|:(?= )/g, " ")} `;
  return short.split(/,? or |, /).every((part) => listed.includes(` ${part} `)) ? "" : short;
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
