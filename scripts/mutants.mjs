// @ts-check
/**
 * Mutants: one-line faults in the compiled program, one at a time, each with the unit tests that run the line. A fault that no test notices
 * is a line that nothing asks for. Prints them, and the share that is found for each folder. SEED=N chooses others, COUNT=N as many.
 */
import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

import { parseSync } from "oxc-parser";

const SEED = Number(process.env["SEED"] ?? 1);
const COUNT = Number(process.env["COUNT"] ?? 40);
/** What runs with the program's rights in the kernel, or is drawn in a browser, has no unit test that could see it. */
const ROOMS = (process.env["ROOMS"] ?? "src/base src/query src/container src/config src/control src/features").split(
  " ",
);
const TEST_MS = 60_000;
/** A fault is looked for by so many test files, those that run the line least often first: they are about it. */
const FILES_MAX = 12;

/** What takes the place of an operator. */
const OTHERS = new Map([
  ["===", "!=="],
  ["!==", "==="],
  ["<", "<="],
  ["<=", "<"],
  [">", ">="],
  [">=", ">"],
  ["&&", "||"],
  ["||", "&&"],
  ["??", "&&"],
  ["+", "-"],
  ["-", "+"],
  ["&", "|"],
  ["+=", "-="],
  ["-=", "+="],
]);

/** @typedef {{ file: string, start: number, end: number, to: string, line: number, text: string }} Mutant */
/** @typedef {{ start: number, end: number, count: number }} Range */

// The tests read files beside the program.
const folder = mkdtempSync(join(tmpdir(), "d11-mutants-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(1));

const copies = Array.from({ length: availableParallelism() }, (_, at) => {
  const copy = join(folder, String(at));
  for (const name of ["dist", "src", "test", "docs", "package.json", "README.md", "scripts"])
    cpSync(name, join(copy, name), { recursive: true });
  symlinkSync(resolve("node_modules"), join(copy, "node_modules"));
  return copy;
});
const tests = readdirSync("dist/test/unit", { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".test.js"))
  .map((name) => join("dist/test/unit", name));

console.log(`mutants: seed ${SEED}, ${COUNT} faults, ${tests.length} test files`);
/** Which test files run which octets of which module. @type {Map<string, { test: string, ranges: readonly Range[] }[]>} */
const covered = new Map();
await inCopies(tests, async (test, copy) => {
  const coverage = mkdtempSync(join(folder, "coverage-"));
  if (!(await passes(test, copy, { NODE_V8_COVERAGE: coverage }))) throw new Error(`${test} fails without a fault`);
  for (const name of readdirSync(coverage)) {
    const { result } = JSON.parse(readFileSync(join(coverage, name), "utf8"));
    for (const { url, functions } of result) {
      if (!url.startsWith("file:")) continue;
      const file = relative(copy, fileURLToPath(url));
      if (!file.startsWith("dist/src/")) continue;
      const ranges = functions.flatMap((/** @type {{ ranges: any[] }} */ each) =>
        each.ranges.map(({ startOffset: start, endOffset: end, count }) => ({ start, end, count })),
      );
      const known = covered.get(file) ?? [];
      known.push({ test, ranges });
      covered.set(file, known);
    }
  }
  rmSync(coverage, { recursive: true });
});

const chosen = chooseFrom(ROOMS.flatMap(mutantsIn));
/** @type {Map<string, { found: number, alive: Mutant[], unseen: number }>} */
const rooms = new Map();
await inCopies(chosen, async (mutant, copy) => {
  const room = dirname(mutant.file).split("/").slice(1, 4).join("/");
  const score = rooms.get(room) ?? { found: 0, alive: [], unseen: 0 };
  rooms.set(room, score);
  const able = testsOf(mutant);
  if (able.length === 0) {
    score.unseen++;
    return;
  }
  const path = join(copy, mutant.file);
  const text = readFileSync(path, "utf8");
  writeFileSync(path, text.slice(0, mutant.start) + mutant.to + text.slice(mutant.end));
  try {
    for (const test of able.slice(0, FILES_MAX)) {
      if (await passes(test, copy, {})) continue;
      score.found++;
      return;
    }
    score.alive.push(mutant);
  } finally {
    writeFileSync(path, text);
  }
});

let found = 0;
let alive = 0;
let unseen = 0;
for (const [room, score] of [...rooms].toSorted(([a], [b]) => a.localeCompare(b))) {
  console.log(`\n${room}: ${score.found} found, ${score.alive.length} alive, ${score.unseen} that no unit test runs`);
  for (const { file, line, text, to } of score.alive)
    console.log(`  ${file.slice("dist/".length).replace(/js$/, "ts")} (compiled line ${line}): ${text}  ->  ${to}`);
  found += score.found;
  alive += score.alive.length;
  unseen += score.unseen;
}
const seen = found + alive;
console.log(
  `\nof ${seen} faults in lines that unit tests run, ${found} are found (${Math.round((100 * found) / Math.max(1, seen))} %)`,
);
console.log(`${unseen} are in lines that only the tests from outside run`);

/** Runs the work for each, in a copy of its own. @template T @param {readonly T[]} all @param {(each: T, copy: string) => Promise<void>} work */
async function inCopies(all, work) {
  const waiting = [...all];
  await Promise.all(
    copies.map(async (copy) => {
      for (let each = waiting.shift(); each !== undefined; each = waiting.shift()) await work(each, copy);
    }),
  );
}

/** @param {string} test @param {string} copy @param {NodeJS.ProcessEnv} env @returns {Promise<boolean>} */
function passes(test, copy, env) {
  return new Promise((done) => {
    const child = spawn(process.execPath, ["--test-reporter=dot", test], {
      cwd: copy,
      stdio: "ignore",
      env: { ...process.env, ...env },
      timeout: TEST_MS,
      killSignal: "SIGKILL",
    });
    child.on("close", (code) => done(code === 0));
  });
}

/** The test files that run this place; those that run it least often, and so look at it most closely, first. @param {Mutant} mutant */
function testsOf({ file, start }) {
  return (covered.get(file) ?? [])
    .map(({ test, ranges }) => ({ test, count: countAt(ranges, start) }))
    .filter(({ count }) => count > 0)
    .toSorted((a, b) => a.count - b.count || a.test.localeCompare(b.test))
    .map(({ test }) => test);
}

/** How often the place has run: the innermost range decides. @param {readonly Range[]} ranges @param {number} at */
function countAt(ranges, at) {
  let best = { size: Infinity, count: 0 };
  for (const { start, end, count } of ranges)
    if (start <= at && at < end && end - start <= best.size) best = { size: end - start, count };
  return best.count;
}

/** @param {Mutant[]} all */
function chooseFrom(all) {
  const random = generator(SEED);
  const left = [...all];
  /** @type {Mutant[]} */
  const taken = [];
  while (taken.length < COUNT && left.length > 0) taken.push(...left.splice(Math.floor(random() * left.length), 1));
  return taken;
}

/** Mulberry32: the same seed, the same faults. @param {number} seed */
function generator(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** @param {string} room @returns {Mutant[]} */
function mutantsIn(room) {
  return (
    readdirSync(join("dist", room), { recursive: true, encoding: "utf8" })
      // A bundle of other files: scripts/bundle.mjs.
      .filter((name) => name.endsWith(".js") && !name.endsWith("/worker-main.js"))
      .toSorted()
      .flatMap((name) => mutantsOf(join("dist", room, name)))
  );
}

/** @param {string} file @returns {Mutant[]} */
function mutantsOf(file) {
  const text = readFileSync(file, "utf8");
  const lines = text.split("\n");
  /** @type {Mutant[]} */
  const mutants = [];
  /** @param {number} start @param {number} end @param {string} to */
  const add = (start, end, to) => {
    const line = text.slice(0, start).split("\n").length;
    mutants.push({ file, start, end, to, line, text: lines[line - 1]?.trim() ?? "" });
  };
  /** @param {any} node @param {any} parent */
  const visit = (node, parent) => {
    if (Array.isArray(node)) return node.forEach((each) => visit(each, parent));
    if (typeof node?.type !== "string") return;
    const { type, start, end } = node;
    if (type === "BinaryExpression" || type === "LogicalExpression" || type === "AssignmentExpression") {
      const other = OTHERS.get(node.operator);
      const at = text.indexOf(node.operator, node.left.end);
      if (other !== undefined) add(at, at + node.operator.length, other);
    } else if (type === "UnaryExpression" && node.operator === "!") add(start, start + 1, "");
    else if (type === "Literal" && typeof node.value === "boolean") add(start, end, String(!node.value));
    else if (type === "Literal" && typeof node.value === "number" && parent?.type !== "Property")
      add(start, end, String(node.value + 1));
    else if (type === "ExpressionStatement" && node.expression.type === "CallExpression") add(start, end, ";");
    for (const key of Object.keys(node)) visit(node[key], node);
  };
  visit(parseSync(file, text).program, undefined);
  return mutants;
}
