import { oneOf } from "../../config/kinds.ts";
import { featureValues, one } from "../../config/setting.ts";
import type { Settings } from "../../config/settings.ts";

/** "auto": the kernel where it can; "kernel": the same, and a warning where it cannot. */
const ANSWERS = ["auto", "kernel", "process"] as const;

const settings = {
  answers: one(
    oneOf(ANSWERS),
    "auto",
    "who answers repeated plain queries: auto (an eBPF program where that works), kernel (the same, with a warning where not), process",
    { isForStart: true },
  ),
};

export const KERNEL_ANSWERS = {
  settings,
  calls: (all: Pick<Settings, "features">): readonly "bpf"[] => (answersOf(all) === "process" ? [] : ["bpf"]),
  report: async () => await import("./report.ts"),
  load: async () => await import("./kernel-answers.ts"),
} as const;

/** Who answers plain queries that are repeated. */
export function answersOf(all: Pick<Settings, "features">): (typeof ANSWERS)[number] {
  return featureValues(settings, all).answers;
}
