// Owns the long run of the fuzzer: `node dist/test/fuzz/fuzz-main.js --inputs 1000000 --seed 1`, with --kernel against the
// program that answers in the kernel. Prints statistics and
// durations; exits with 1 at the first message that violates an invariant, with everything needed to reproduce it.

import { parseArgs } from "node:util";

import { bufferBytes } from "../unit/support/buffer-memory.ts";
import { type Run, fuzz } from "./run.ts";

// In the folder of the feature's tests.
const KERNEL = new URL("../features/kernel-answers/fuzz/kernel-run.js", import.meta.url).href;

const { values } = parseArgs({
  options: {
    inputs: { type: "string" },
    seed: { type: "string" },
    from: { type: "string" },
    kernel: { type: "boolean" },
  },
});
const inputs = Number(values.inputs ?? 1_000_000);
const seed = Number(values.seed ?? Date.now() % 1_000_000);
const from = Number(values.from ?? 0);
if (![inputs, seed, from].every((value) => Number.isSafeInteger(value) && value >= 0)) {
  console.error("usage: fuzz-main [--inputs N] [--seed N] [--from N] [--kernel]");
  process.exit(2);
}

// Warm-up: compilation and heap growth belong to the program, not to the inputs.
const fuzzed =
  values.kernel === true ? ((await import(KERNEL)) as { readonly fuzzKernel: typeof fuzz }).fuzzKernel : fuzz;
fuzzed({ seed, inputs: Math.min(inputs, 20_000), from });
const before = held();
const run = fuzzed({ seed, inputs, from });
const grown = held() - before;
report(run);
process.exit(run.violation === undefined ? 0 : 1);

function report({ seconds, violation, times, outcomes, inputs: count }: Run): void {
  console.log(`seed ${seed}: ${count} inputs in ${seconds.toFixed(1)} s, ${Math.round(count / seconds)} inputs/s`);
  console.log(
    `outcomes: ${Object.entries(outcomes)
      .map(([word, sum]) => `${word} ${sum}`)
      .join(", ")}`,
  );
  for (const [kind, { median, slowest, slowestBytes, slowestIndex }] of Object.entries(times)) {
    if (slowestIndex === -1) continue;
    const ratio = Math.round(slowest / median);
    console.log(
      `${kind.padEnd(10)} median ${median.toFixed(1)} us, slowest ${slowest.toFixed(1)} us (${ratio} x; ${slowestBytes} octets, input ${slowestIndex})`,
    );
  }
  console.log(`memory grew by ${Math.round(grown / 1024)} KB`);
  if (violation === undefined) return;
  console.error(`violation in input ${violation.index} (${violation.what}): ${String(violation.error)}`);
  console.error(violation.hex);
  console.error(`again: --seed ${seed} --from ${violation.index} --inputs 1`);
}

function held(): number {
  const buffers = bufferBytes();
  return buffers + process.memoryUsage().heapUsed;
}
