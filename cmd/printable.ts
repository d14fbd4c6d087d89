/**
 * Printable: makes text from containers safe to print. Names, labels, rules and files may contain control characters that
 * manipulate the reader's terminal, or bidirectional controls that reverse what is read.
 */
const CONTROL_CHARACTERS = /[\p{Cc}\p{Bidi_Control}]/gu;

export function printable(text: string): string {
  return text.replaceAll(CONTROL_CHARACTERS, escaped);
}

/** The same for a text of several lines. */
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
