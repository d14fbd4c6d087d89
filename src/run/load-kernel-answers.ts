/**
 * LoadKernelAnswers: the program that repeats answers in the kernel, where the settings allow it and everything that
 * it needs is there. Otherwise the process answers, and the status and the doctor say why.
 */
import { release } from "node:os";

import { LIMITS } from "../base/limits.ts";
import { Fault, reasonOf } from "../base/lib/fault.ts";
import type { RuleBackendChoice } from "../base/model/rule-backend.ts";
import type { RunSettings } from "../config/settings.ts";
import type { NamespaceRunner } from "../container/namespace/namespace-runner.ts";
import type { Log } from "../base/log/log.ts";
import { KernelAnswers } from "../kernel/answers/kernel-answers.ts";

/** The answers in the kernel; or why there are none, if they may be. */
export interface KernelAnswersChoice {
  readonly kernelAnswers: KernelAnswers | undefined;
  readonly reason: string | undefined;
  /** What to do about it, if it is known. */
  readonly remedy?: string | undefined;
}

const NOT_WANTED: KernelAnswersChoice = { kernelAnswers: undefined, reason: undefined };

export function loadKernelAnswers(
  { answers, behaviour }: Pick<RunSettings, "answers" | "behaviour">,
  { backend }: RuleBackendChoice,
  runner: NamespaceRunner,
  log: Log,
): KernelAnswersChoice {
  if (answers === "process") return NOT_WANTED;
  const without = (reason: string, error?: Fault): KernelAnswersChoice => {
    const about = error === undefined ? { reason } : { reason, details: reasonOf(error) };
    // Where the kernel answers if it can, it is no news that it cannot.
    log[answers === "kernel" ? "warn" : "info"](about, "the kernel cannot answer queries, so the process does");
    return { kernelAnswers: undefined, reason, remedy: error?.remedy };
  };
  if (backend !== "nft-owner") {
    return without(`the rule backend is ${backend}, whose rules could stay without the program`);
  }
  try {
    const kernelAnswers = loaded(runner);
    kernelAnswers.setStyle(behaviour);
    return { kernelAnswers, reason: undefined };
  } catch (error) {
    // What the verifier says is for the log.
    if (error instanceof Fault && error.remedy !== undefined)
      return without(`${error.message} (Linux ${release()})`, error);
    return without(reasonOf(error));
  }
}

/** Attached once where nothing is, so that what is missing is found before any container depends on it. */
function loaded(runner: NamespaceRunner): KernelAnswers {
  const kernelAnswers = new KernelAnswers(LIMITS.kernelAnswers);
  try {
    runner.withinScratch(() => {
      const space = kernelAnswers.open();
      space?.attach();
      space?.close();
    });
    return kernelAnswers;
  } catch (error) {
    kernelAnswers.close();
    throw error;
  }
}
