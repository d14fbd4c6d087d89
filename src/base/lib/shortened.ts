/** The beginning of a text of any length, for display. */
export function shortened(text: string, charsMax: number): string {
  return text.length > charsMax ? `${text.slice(0, charsMax)}...` : text;
}
