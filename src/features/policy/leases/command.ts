import { type Command, Option } from "commander";

import { addExamples } from "../../../../cmd/help/help-layout.ts";
import { note } from "../../../../cmd/options/container-argument.ts";
import { type ControlOptions, addControlOptions, clientFor } from "../../../../cmd/options/control-options.ts";
import { abortOnSignal } from "../../../../cmd/process/own-process.ts";
import { PolicyHold } from "../../../api/policy-hold.ts";
import type { PolicyLeaseEnd } from "../../../api/policies.ts";

interface ApplyOptions extends ControlOptions {
  readonly after: PolicyLeaseEnd;
}

export function add(program: Command): void {
  const policy = program.commands.find((each) => each.name() === "policy");
  const apply = policy
    ?.command("apply")
    .description("Put the policies of a settings file into force until the command is interrupted")
    .argument("<file>", "a file with policies, such as `dns11 policy learn` prints")
    .addOption(
      new Option(
        "--after <end>",
        "when it ends: closed refuses everything to containers that still run, open is as before",
      )
        .choices(["closed", "open"])
        .default("closed"),
    )
    .exitOverride();
  if (apply === undefined) return;
  addExamples(apply, ["dns11 policy apply agents.yaml", "agents.yaml holds until Ctrl-C"]);
  addControlOptions(apply).action(async (file: string, options: ApplyOptions) => await holdFile(file, options));
}

async function holdFile(file: string, options: ApplyOptions): Promise<void> {
  const { policiesIn } = await import("../../../../cmd/process/policy-file.ts");
  const policies = policiesIn(file);
  const client = await clientFor(options);
  const stop = abortOnSignal("SIGINT", "SIGTERM", "SIGHUP");
  const hold = await PolicyHold.start(async () => await client.openPolicyLease(), { policies, after: options.after });
  const names = (): string => hold.names.join(", ");
  note(`in force: ${names()}; Ctrl-C ends it ${options.after}`);
  const meanwhile =
    options.after === "closed" ? "what the policies are for is closed meanwhile" : "they do not hold meanwhile";
  hold.onChange = (isInForce) => note(isInForce ? `in force again: ${names()}` : `dns11 has gone: ${meanwhile}`);
  stop.addEventListener("abort", () => void hold.end(), { once: true });
  await hold.ended;
  note(options.after === "closed" ? "ended: containers that still run get nothing any more" : "ended");
}
