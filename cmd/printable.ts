/** Printable: text of several lines for a terminal, with what could manipulate it escaped. */
import { printableText } from "../src/base/lib/printable.ts";

export { printable, printableText } from "../src/base/lib/printable.ts";

export function printableLines(lines: readonly string[]): string {
  return lines.map((line) => `${printableText(line)}\n`).join("");
}
