/**
 * Roff: text for man(1), limited to the macros that every man implementation supports.
 */
const WIDTH = 78;

/** Plain text with all special characters escaped. */
export function plain(text: string): string {
  return text
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replaceAll("'", "\\(aq")
    .replaceAll("`", "\\(ga")
    .replaceAll("^", "\\(ha")
    .replaceAll("~", "\\(ti");
}

export function bold(text: string): string {
  return `\\fB${plain(text)}\\fR`;
}

export function italic(text: string): string {
  return `\\fI${plain(text)}\\fR`;
}

/** `--flag <value>` with the flag in bold and the placeholder in italics. */
export function usage(text: string): string {
  return text
    .split(/([<[][^\]>]*[\]>]|[\s,]+)/)
    .map((part) => {
      const [, inner] = /^[<[](.*)[\]>]$/.exec(part) ?? [];
      if (inner === undefined) return /^[\s,]*$/.test(part) ? part : bold(part);
      return part.startsWith("[") ? `[${italic(inner)}]` : italic(inner);
    })
    .join("");
}

/** A wrapped paragraph; a line that would start like a roff request is escaped. */
export function wrapped(text: string): string {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/\s+/).filter((each) => each !== "")) {
    if (line !== "" && line.length + word.length >= WIDTH) {
      lines.push(line);
      line = "";
    }
    line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line].map((each) => (/^[.']/.test(each) ? `\\&${each}` : each)).join("\n");
}

/** A term with its description. */
export function item(term: string, text: string): string {
  return `.TP\n${wrapped(term)}\n${wrapped(text)}\n`;
}

export function section(title: string, body: string): string {
  return `.SH ${title}\n${body}`;
}

export function heading(title: string, chapter: number, day: string | null, source: string): string {
  return `.TH ${plain(title)} ${chapter} ${day ?? "1970-01-01"} "${plain(source)}" "dns11"\n`;
}
