/**
 * CommandLine: runs the command line. Only this file ends the process.
 */
import { CommanderError } from "commander";

import { refuseAbsent } from "./help/absent-commands.ts";
import { codeOf, reasonOf } from "../src/base/lib/fault.ts";
import { EXIT, errorText, exitCodeOf } from "./process/exit-code.ts";
import { endProcess } from "./process/own-process.ts";
import { createProgram } from "./program.ts";

// `docker dns` also ends up here, through docker-dns.ts.
const isPlugin = /\/docker-dns(\.js)?$/.test(process.argv[1] ?? "");

// A reader may close the pipe at any time: `dns11 tail | head`.
process.stdout.on("error", endWithout);

const program = await createProgram(isPlugin ? "docker dns" : "dns11", process.argv[2]);

try {
  refuseAbsent(program, process.argv[2] ?? "");
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) {
    process.exitCode = error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  } else {
    process.stderr.write(`${errorText(error)}\n`);
    process.exitCode = exitCodeOf(error);
  }
}
// Whatever is still pending, such as an open connection or a retry, must not keep the process alive. But a slow reader may
// not have received all output yet.
if (process.stdout.errored === null) process.stdout.write("", endProcess);
// The event of this error comes later.
else endWithout(process.stdout.errored);

function endWithout(error: Error): never {
  if (codeOf(error) === "EPIPE") process.exit();
  process.stderr.write(`dns11: cannot write its output: ${reasonOf(error)}\n`);
  process.exit(EXIT.failure);
}
