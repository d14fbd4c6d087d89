/**
 * Printable: makes text from containers safe to show, on a terminal or a page. Names, labels, rules and files may contain control
 * characters that manipulate the reader's terminal, or bidirectional controls that reverse what is read.
 */
const CONTROL_CHARACTERS = /[\p{Cc}\p{Bidi_Control}]/gu;

export function printable(text: string): string {
  return text.replaceAll(CONTROL_CHARACTERS, escaped);
}

/** The same for a text of several lines. */
export function printableText(text: string): string {
  return text.split("\n").map(printable).join("\n");
}

function escaped(character: string): string {
  const code = character.charCodeAt(0).toString(16);
  return code.length > 2 ? `\\u${code.padStart(4, "0")}` : `\\x${code.padStart(2, "0")}`;
}
