// Looks up the name in each line of its input with Node, and prints the addresses, or the error: `lookup` asks the C library,
// `resolve4` the library c-ares.
import { lookup, resolve4 } from "node:dns/promises";
import { createInterface } from "node:readline";

const find =
  process.argv[2] === "resolve4"
    ? resolve4
    : async (name) => (await lookup(name, { all: true })).map(({ address }) => address);

for await (const name of createInterface({ input: process.stdin })) {
  try {
    console.log((await find(name)).join(" "));
  } catch (error) {
    console.log(`error: ${error.code}`);
  }
}
