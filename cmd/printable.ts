/**
 * Printable: what may be shown of what others wrote. Names, labels, rules and files of a container's may hold what would
 * steer the reader's terminal, or turn the order of what is read around.
 */
const CONTROL_CHARACTERS = /[\p{Cc}\p{Bidi_Control}]/gu;

export function printable(text: string): string {
  return text.replaceAll(CONTROL_CHARACTERS, escaped);
}

/** The same of a text that has lines. */
export function printableText(text: string): string {
  return text.split("\n").map(printable).join("\n");
}

export function printableLines(lines: readonly string[]): string {
  return lines.map((line) => `${printableText(line)}\n`).join("");
}

function escaped(character: string): string {
  const code = character.charCodeAt(0).toString(16);
  return code.length > 2 ? `\\u${code.padStart(4, "0")}` : `\\x${code.padStart(2, "0")}`;
}
