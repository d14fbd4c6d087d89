// Owns a run of the fuzzer against the program that answers in the kernel: a number of packets from one seed. It needs root.

import { KernelCheck } from "./kernel-check.ts";
import { Random } from "./random.ts";
import type { Run, RunOptions } from "./run.ts";

export function fuzzKernel({ seed, inputs, from = 0 }: RunOptions): Run {
  const check = new KernelCheck();
  let violation: Run["violation"];
  const start = performance.now();
  let index = from;
  for (; index < from + inputs && violation === undefined; index++) {
    const random = new Random(seed, index);
    const message = check.draw(random);
    try {
      check.run(message, random);
    } catch (error) {
      violation = { index, what: "kernel", hex: message.toString("hex"), error };
    }
  }
  check.close();
  const seconds = (performance.now() - start) / 1000;
  return { inputs: index - from, seconds, violation, times: {}, outcomes: check.outcomes };
}
