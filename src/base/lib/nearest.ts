/** Nearest: the word that was probably meant by a mistyped one. */

/** A word with a larger share of wrong letters is not a typing error. */
const WRONG_SHARE_MAX = 0.4;

/** The word with the smallest edit distance; undefined where none is close. */
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

/** The number of substitutions, insertions, deletions, and swaps of neighbours. */
function changesBetween(a: string, b: string): number {
  let [last, before] = [[] as number[], Array.from({ length: b.length + 1 }, (_, index) => index)];
  for (let i = 1; i <= a.length; i++) {
    const now = [i];
    for (let j = 1; j <= b.length; j++) {
      const exchanged = at(before, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swapped = isSwapped ? at(last, j - 2) + 1 : exchanged;
      now.push(Math.min(exchanged, swapped, at(before, j) + 1, at(now, j - 1) + 1));
    }
    [last, before] = [before, now];
  }
  return at(before, b.length);
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? 0;
}
