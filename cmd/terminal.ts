/**
 * Terminal colours: used only on a terminal, and not with NO_COLOR or TERM=dumb.
 */
export type Colour = "red" | "green" | "yellow" | "dim" | "bold";

export type Paint = (text: string, colour: Colour) => string;

const CODES: Readonly<Record<Colour, number>> = { red: 31, green: 32, yellow: 33, dim: 2, bold: 1 };

export function painterFor(stream: { readonly isTTY?: boolean }, env: NodeJS.ProcessEnv = process.env): Paint {
  const isPlain = stream.isTTY !== true || (env["NO_COLOR"] ?? "") !== "" || env["TERM"] === "dumb";
  return isPlain ? (text) => text : (text, colour) => `\u001B[${CODES[colour]}m${text}\u001B[0m`;
}
