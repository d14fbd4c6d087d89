// The first process of a bare machine: has the kernel load the program that answers in it, sends it packets, and attaches it to lo.
// Prints one line of JSON. The kernel ends the machine when its first process ends.

import { release } from "node:os";

import { KERNEL_ANSWER_LIMITS } from "../../../src/features/kernel-answers/limits.ts";
import { codeOf, reasonOf } from "../../../src/base/lib/fault.ts";
import { KernelAnswers } from "../../../src/features/kernel-answers/kernel/kernel-answers.ts";
import { fuzzKernel } from "./fuzz/kernel-run.ts";
import type { BareOutcome } from "../../vm/bare-machine.ts";

const SEED = 20_260_103;
const PACKETS = 1_000;

function outcome(): BareOutcome {
  try {
    const { violation, outcomes } = fuzzKernel({ seed: SEED, inputs: PACKETS });
    if (violation !== undefined) return { failed: `packet ${violation.index}: ${String(violation.error)}` };
    return { kernel: release(), answered: outcomes["answered"] ?? 0, notAttached: whyNotAttached() };
  } catch (error) {
    return { failed: reasonOf(error) };
  }
}

/** A code. */
function whyNotAttached(): string | null {
  const kernel = new KernelAnswers(KERNEL_ANSWER_LIMITS);
  try {
    kernel.open()?.attach();
    return null;
  } catch (error) {
    return codeOf(error) ?? reasonOf(error);
  }
}

process.stdout.write(`\n${JSON.stringify(outcome())}\n`);
