/**
 * OptionLines: the options in the files of a dnsmasq folder, as dnsmasq splits its lines: a comment begins the line or
 * follows a space, a double quote protects commas and comments, and a backslash in one stands before what is
 * meant literally, or before the letter of a control character.
 */

export interface ConfigText {
  readonly path: string;
  readonly text: string;
}

export interface OptionLine {
  readonly name: string;
  /** The values between its commas; none of an option without a value. */
  readonly parts: readonly string[];
  /** A quote in it has no end. */
  readonly isOpen: boolean;
  /** File and line. */
  readonly where: string;
}

/** What a backslash and one of these mean between quotes; before anything else it is a backslash, as in `v=DKIM1\; k=rsa`. */
const ESCAPED: Readonly<Record<string, string>> = {
  ...{ t: "\t", n: "\n", b: "\b", r: "\r", e: "\u001B" },
  ...{ '"': '"', "\\": "\\" },
};

/** Throws no error: a line that cannot be read is an option without a meaning. */
export function optionLines({ path, text }: ConfigText): OptionLine[] {
  return text.split("\n").flatMap((line, index) => {
    const option = optionIn(line);
    return option === undefined ? [] : [{ ...option, where: `${path}:${index + 1}` }];
  });
}

function optionIn(line: string): Omit<OptionLine, "where"> | undefined {
  const parts: string[] = [];
  let name: string | undefined;
  let [part, isQuoted, isAfterSpace] = ["", false, true];
  for (let at = 0; at < line.length; at++) {
    const char = line[at] as string;
    const escaped = isQuoted && char === "\\" ? ESCAPED[line[at + 1] ?? ""] : undefined;
    if (escaped !== undefined) {
      part += escaped;
      at++;
    } else if (char === '"') isQuoted = !isQuoted;
    else if (isQuoted) part += char;
    else if (char === "#" && isAfterSpace) break;
    else if (char === "=" && name === undefined) [name, part] = [part.trim(), ""];
    else if (char === "," && name !== undefined) {
      parts.push(part.trim());
      part = "";
    } else part += char;
    isAfterSpace = !isQuoted && /\s/.test(char);
  }
  if (name !== undefined) return { name, parts: [...parts, part.trim()], isOpen: isQuoted };
  const alone = part.trim();
  return alone === "" ? undefined : { name: alone, parts: [], isOpen: isQuoted };
}
