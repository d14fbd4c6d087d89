/**
 * Printable: makes text from containers safe to show, on a terminal or a page. Names, labels, rules and files may contain control
 * characters that manipulate the reader's terminal, or bidirectional controls that reverse what is read.
 */
const CONTROL_CHARACTERS = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;
/** Those that JSON.stringify leaves as they are. */
const CONTROLS_IN_JSON = /[\u007f-\u009f\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;

export function printable(text: string): string {
  return text.replaceAll(CONTROL_CHARACTERS, escaped);
}

/** The same for a text of several lines. */
export function printableText(text: string): string {
  return text.split("\n").map(printable).join("\n");
}

/** JSON without control characters: the same value, in a text that can be shown. */
export function printableJson(value: unknown, indent?: number): string {
  return escapedJson(JSON.stringify(value, undefined, indent));
}

/** The same for what is JSON already, whole or in pieces. */
export function escapedJson(json: string): string {
  return json.replaceAll(CONTROLS_IN_JSON, unicodeEscape);
}

function escaped(character: string): string {
  const code = character.charCodeAt(0).toString(16);
  return code.length > 2 ? unicodeEscape(character) : `\\x${code.padStart(2, "0")}`;
}

function unicodeEscape(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
