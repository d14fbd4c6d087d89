/** Printable: text of several lines, or JSON in one, for a terminal, with what could manipulate it escaped. */
import { printableJson, printableText } from "../../src/base/lib/text.ts";

export { printable, printableText } from "../../src/base/lib/text.ts";

export function printableLines(lines: readonly string[]): string {
  return lines.map((line) => `${printableText(line)}\n`).join("");
}

/** What --json prints. */
export function jsonLine(value: unknown): string {
  return `${printableJson(value)}\n`;
}
