#!/usr/bin/env node
/**
 * dns11: the command line. Each command is a file beside this one; this is the only file that ends the process.
 */
import { Command, CommanderError } from "commander";

import { readBuild } from "./build.ts";
import { addCache } from "./cache.ts";
import { addCheckConfig } from "./check-config.ts";
import { addCleanup } from "./cleanup.ts";
import { addCompletion } from "./completion.ts";
import { addDoctor } from "./doctor.ts";
import { EXIT, exitCodeOf, errorText } from "./exit-code.ts";
import { addExplain } from "./explain.ts";
import { addHelp } from "./help.ts";
import { addKind } from "./kind.ts";
import { addLookup } from "./lookup.ts";
import { addManual } from "./manual.ts";
import { addPs } from "./ps.ts";
import { addReload } from "./reload.ts";
import { addRun } from "./run.ts";
import { addStatus } from "./status.ts";
import { addTail } from "./tail.ts";
import { addTop } from "./top.ts";
import { addUpstreams } from "./upstreams.ts";
import { addVersion } from "./version.ts";

// `docker dns` comes here, too, by way of docker-dns.ts.
const isPlugin = /\/docker-dns(\.js)?$/.test(process.argv[1] ?? "");

const program = new Command(isPlugin ? "docker dns" : "dns11")
  .description("The resolver of 127.0.0.11, outside dockerd")
  .version(readBuild().version, "-V, --version", "print the version")
  .exitOverride()
  // A command of a command has options of its own, also of the same name.
  .enablePositionalOptions()
  .configureHelp({ sortOptions: false, showGlobalOptions: false });
addRun(program);
addStatus(program);
addPs(program);
addLookup(program);
addExplain(program);
addTail(program);
addTop(program);
addUpstreams(program);
addCache(program);
addReload(program);
addDoctor(program);
addKind(program);
addCheckConfig(program);
addCleanup(program);
addCompletion(program);
addVersion(program);
addManual(program);
addHelp(program);
for (const command of program.commands) command.exitOverride();

try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) {
    process.exitCode = error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  } else {
    process.stderr.write(`${errorText(error)}\n`);
    process.exitCode = exitCodeOf(error);
  }
}
// What is still pending then is nobody's: a connection that is kept, a retry that will not be. But a long answer may still be
// on its way to a reader that takes its time.
process.stdout.write("", () => process.exit());
