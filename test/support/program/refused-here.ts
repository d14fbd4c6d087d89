/**
 * Command lines that are refused before they do anything, in the process of the test: a process for each would be most of what the
 * test takes.
 */
import { CommanderError } from "commander";

import { EXIT, errorText, exitCodeOf } from "../../../cmd/process/exit-code.ts";
import { createProgram } from "../../../cmd/program.ts";

export interface Refusal {
  readonly code: number;
  readonly stderr: string;
}

/** Undefined if it is not refused. */
export async function refusedHere(args: readonly string[]): Promise<Refusal | undefined> {
  const program = await createProgram("dns11", args[0]);
  let stderr = "";
  const output = { writeErr: (text: string): void => void (stderr += text) };
  for (const each of [program, ...program.commands]) each.configureOutput(output);
  try {
    await program.parseAsync([...args], { from: "user" });
    return undefined;
  } catch (error) {
    if (error instanceof CommanderError) return { code: EXIT.usage, stderr };
    return { code: exitCodeOf(error), stderr: `${stderr}${errorText(error)}\n` };
  }
}
