// Owns a run of the fuzzer against the program that answers in the kernel: a number of packets from one seed, in both modes. It
// needs root.

import { DEFAULT_BEHAVIOUR, STRICT_BEHAVIOUR } from "../../../../src/base/model/behaviour.ts";
import { KernelCheck } from "./kernel-check.ts";
import { Random } from "../../../fuzz/random.ts";
import type { Run, RunOptions } from "../../../fuzz/run.ts";

export function fuzzKernel({ seed, inputs, from = 0 }: RunOptions): Run {
  const checks = [new KernelCheck(DEFAULT_BEHAVIOUR), new KernelCheck(STRICT_BEHAVIOUR)];
  let violation: Run["violation"];
  const start = performance.now();
  let index = from;
  for (; index < from + inputs && violation === undefined; index++) {
    const random = new Random(seed, index);
    const check = random.pick(checks);
    const message = check.draw(random);
    try {
      check.run(message, random);
    } catch (error) {
      violation = { index, what: "kernel", hex: message.toString("hex"), error };
    }
  }
  const seconds = (performance.now() - start) / 1000;
  const outcomes: Record<string, number> = {};
  for (const check of checks) {
    check.close();
    for (const [word, count] of Object.entries(check.outcomes)) outcomes[word] = (outcomes[word] ?? 0) + count;
  }
  return { inputs: index - from, seconds, violation, times: {}, outcomes };
}
