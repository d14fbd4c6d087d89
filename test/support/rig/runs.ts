/**
 * How many random cases a property has. Each run of the tests has other ones, so few of them are enough for each change;
 * DNS11_TEST_RUNS multiplies them, which scripts/test.mjs does where all tests run.
 */
const FACTOR = Number(process.env["DNS11_TEST_RUNS"] ?? 1);

export function runs(few: number): number {
  return few * FACTOR;
}
