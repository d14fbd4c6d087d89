/**
 * Counted: a number with its noun, such as "1 record" or "2 records".
 */
export function counted(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
