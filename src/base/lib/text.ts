/**
 * Makes text from containers safe to show, on a terminal or a page. Names, labels, rules and files may contain control
 * characters that manipulate the reader's terminal, or bidirectional controls that reverse what is read.
 */
const CONTROL_CHARACTERS = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;
/** The control characters that JSON.stringify leaves as they are. */
const CONTROLS_IN_JSON = /[\u007f-\u009f\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;

export function printable(text: string): string {
  return text.replaceAll(CONTROL_CHARACTERS, escaped);
}

/** Makes a text of several lines safe to show. */
export function printableText(text: string): string {
  return text.split("\n").map(printable).join("\n");
}

/** JSON without control characters: the same value, in a text that can be shown. */
export function printableJson(value: unknown, indent?: number): string {
  return escapedJson(JSON.stringify(value, undefined, indent));
}

/** Escapes control characters in text that is JSON already, whole or in pieces. */
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

/** Orders objects by the code units of their names: the same order on every machine. */
export function byName(a: { readonly name: string }, b: { readonly name: string }): number {
  return a.name < b.name ? -1 : 1;
}

/**
 * A number with its noun, such as "1 record" or "2 records".
 */
export function counted(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

/** The beginning of a text of any length, for display. */
export function shortened(text: string, charsMax: number): string {
  return text.length > charsMax ? `${text.slice(0, charsMax)}...` : text;
}

/** The share of the room that the beginning gets. */
const HEAD = 0.4;

/**
 * A text that is too long without its middle: `acme-plat…-worker-1`. Names of one project begin alike and differ at
 * their ends, so the end keeps more of the room.
 */
export function cutMiddle(text: string, max: number, mark = "…"): string {
  if (text.length <= max) return text;
  // Not by code units: half of a character outside of the Basic Multilingual Plane is no character.
  const characters = [...text];
  if (characters.length <= max) return text;
  const room = max - mark.length;
  if (room < 2) return characters.slice(0, Math.max(0, max)).join("");
  const head = Math.floor(room * HEAD);
  return [...characters.slice(0, head), mark, ...characters.slice(head - room)].join("");
}

/** A line of a file such as /etc/hosts up to its comment. An expression would be tried at each "#" of a line that a container wrote. */
export function withoutComment(line: string): string {
  const at = line.indexOf("#");
  return at < 0 ? line : line.slice(0, at);
}

/**
 * A command for people to copy. Names in it are quoted for a shell, because any container may have chosen them.
 */
const PLAIN_WORD = /^[\w@%+=:,./-]+$/;

/** A command line of these words. */
export function commandOf(...words: readonly string[]): string {
  return words.map((word) => (PLAIN_WORD.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");
}
