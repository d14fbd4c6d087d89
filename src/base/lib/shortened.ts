/** The beginning of a text that may be of any length, for whoever is shown it. */
export function shortened(text: string, charsMax: number): string {
  return text.length > charsMax ? `${text.slice(0, charsMax)}...` : text;
}
