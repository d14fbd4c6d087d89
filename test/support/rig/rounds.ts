/** Rounds: counts the rounds of the event loop, to prove what shares one. */

export function countRounds(): { readonly count: number } & Disposable {
  let count = 0;
  let next = setImmediate(function round() {
    count++;
    next = setImmediate(round);
  });
  return {
    get count() {
      return count;
    },
    [Symbol.dispose]: () => clearImmediate(next),
  };
}
