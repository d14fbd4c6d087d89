/** Nearest: which of several words somebody may have meant, for those who mistyped one. */

/** More mistakes than that share of a word are no mistyping. */
const WRONG_SHARE_MAX = 0.4;

/** The word that takes the fewest changes of a letter; undefined where none is near. */
export function nearest(word: string, words: readonly string[]): string | undefined {
  let best: string | undefined;
  let least = Math.max(1, Math.floor(word.length * WRONG_SHARE_MAX)) + 1;
  for (const candidate of words) {
    if (Math.abs(candidate.length - word.length) >= least) continue;
    const changes = changesBetween(word, candidate);
    if (changes < least) [best, least] = [candidate, changes];
  }
  return best;
}

/** Letters to exchange, to put in or to leave out (Levenshtein). */
function changesBetween(a: string, b: string): number {
  let before = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const now = [i];
    for (let j = 1; j <= b.length; j++) {
      const exchanged = (before[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      now.push(Math.min(exchanged, (before[j] ?? 0) + 1, (now[j - 1] ?? 0) + 1));
    }
    before = now;
  }
  return before[b.length] ?? 0;
}
