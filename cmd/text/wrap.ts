/**
 * Wrap: breaks a text into lines of a maximum width. A name that is longer than a line is cut, so that no text, wherever it
 * comes from, disturbs the columns.
 */

/** Lines break after blanks, and inside lists and paths after these characters. */
const PIECES = /\s+|[^\s,/]+[,/]*|[,/]+/g;

/** The lines of a text; all but the first begin with `indent`. */
export function wrapped(text: string, width: number, indent = ""): string[] {
  if (text.length <= width) return [text];
  const lines: string[] = [];
  let line = "";
  for (const [piece] of text.matchAll(PIECES)) {
    let rest = piece;
    if (line.length + rest.trimEnd().length > width && line.trim() !== "") {
      lines.push(line.trimEnd());
      line = indent;
      rest = rest.trimStart();
    }
    while (line.length + rest.trimEnd().length > width) {
      const cut = cutOf(rest, Math.max(1, width - line.length));
      lines.push(line + rest.slice(0, cut));
      rest = rest.slice(cut);
      line = indent;
    }
    if (line !== indent || rest.trim() !== "") line += rest;
  }
  return line.trim() === "" ? lines : [...lines, line.trimEnd()];
}

/** Names are cut after a part, if one fits. */
function cutOf(name: string, room: number): number {
  const parts = name.slice(0, room).match(/^.*[-_.]/)?.[0].length ?? 0;
  return parts > room / 2 ? parts : room;
}
