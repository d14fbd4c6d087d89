/**
 * Keys: what a terminal sends, as keys. Several may come at once.
 */
export type Key = string;

export const KEY = {
  up: "up",
  down: "down",
  left: "left",
  right: "right",
  enter: "enter",
  escape: "escape",
  backspace: "backspace",
  interrupt: "interrupt",
} as const;

const SEQUENCES: ReadonlyMap<string, Key> = new Map([
  ["\u001B[A", KEY.up],
  ["\u001BOA", KEY.up],
  ["\u001B[B", KEY.down],
  ["\u001BOB", KEY.down],
  ["\u001B[C", KEY.right],
  ["\u001BOC", KEY.right],
  ["\u001B[D", KEY.left],
  ["\u001BOD", KEY.left],
  ["\t", KEY.right],
  ["\r", KEY.enter],
  ["\n", KEY.enter],
  ["\u001B", KEY.escape],
  ["\u007F", KEY.backspace],
  ["\b", KEY.backspace],
  ["\u0003", KEY.interrupt],
  ["\u0004", KEY.interrupt],
]);

// eslint-disable-next-line no-control-regex
const PIECES = /\u001B\[[0-9;]*[A-Za-z~]|\u001BO[A-Z]|[^]/gu;

/** Known keys by name, and printable characters as they are; anything else is left out. */
export function keysOf(typed: Buffer): Key[] {
  return (typed.toString("utf8").match(PIECES) ?? []).flatMap((piece) => {
    const key = SEQUENCES.get(piece);
    if (key !== undefined) return key;
    return /^[^\p{C}]$/u.test(piece) ? piece : [];
  });
}
