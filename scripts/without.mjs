// @ts-check
/**
 * Runs tests of dns11 without some of its features: node scripts/without.mjs FEATURE[,FEATURE ...] [WORD ...]. Without words they are
 * those for each change; words select by path.
 */
import { Without } from "../dist/test/support/program/without.js";

const [features, ...words] = process.argv.slice(2);
if (features === undefined) {
  console.error("usage: node scripts/without.mjs FEATURE[,FEATURE ...] [WORD ...]");
  process.exit(2);
}
const copy = await Without.built(features.split(","), "copied");
try {
  process.exitCode = await copy.test(words, (text) => void process.stdout.write(text));
} finally {
  copy[Symbol.dispose]();
}
