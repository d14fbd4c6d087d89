/**
 * Glob: whether a text matches a pattern, in which `*` stands for anything and `?` for one character; letter case is
 * ignored. It backtracks to the last star only, so that no pattern can make it slow.
 */
export function globMatches(pattern: string, text: string): boolean {
  const [expected, given] = [pattern.toLowerCase(), text.toLowerCase()];
  let [at, from] = [0, 0];
  let [star, starFrom] = [-1, 0];
  while (from < given.length) {
    if (expected[at] === "*") {
      star = at++;
      starFrom = from;
    } else if (at < expected.length && (expected[at] === "?" || expected[at] === given[from])) {
      at++;
      from++;
    } else if (star !== -1) {
      at = star + 1;
      from = ++starFrom;
    } else {
      return false;
    }
  }
  while (expected[at] === "*") at++;
  return at === expected.length;
}
