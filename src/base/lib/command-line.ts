/**
 * CommandLine: a command for people to copy. Names in it are quoted for a shell, because any container may have chosen them.
 */
const PLAIN_WORD = /^[\w@%+=:,./-]+$/;

/** A command line of these words. */
export function commandOf(...words: readonly string[]): string {
  return words.map((word) => (PLAIN_WORD.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");
}
