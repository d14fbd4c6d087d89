/** Program: the definition of the command line, apart from running it. Each command has its own file. */
import { Command } from "commander";

import { readBuild } from "./build.ts";
import { addCache } from "./cache.ts";
import { addCheckConfig } from "./check-config.ts";
import { addCleanup } from "./cleanup.ts";
import { addCompletion } from "./completion.ts";
import { addDoctor } from "./doctor.ts";
import { addExplain } from "./explain.ts";
import { addFailures } from "./failures.ts";
import { addHelp } from "./help.ts";
import { HELP_LAYOUT, addHelpAll } from "./help-layout.ts";
import { addKind } from "./kind.ts";
import { addLookup } from "./lookup.ts";
import { addManual } from "./manual.ts";
import { addNames } from "./names.ts";
import { addPs } from "./ps.ts";
import { addReload } from "./reload.ts";
import { addRootlessDefaults } from "./rootless.ts";
import { addRun } from "./run.ts";
import { addStatus } from "./status.ts";
import { addTail } from "./tail.ts";
import { addTop } from "./top.ts";
import { addUi } from "./ui.ts";
import { addUpstreams } from "./upstreams.ts";
import { addVersion } from "./version.ts";

/** `name` is what users type. */
export function createProgram(name: string): Command {
  const program = new Command(name)
    .description("DNS resolver for Docker containers at 127.0.0.11, outside dockerd")
    .version(readBuild().version, "-V, --version", "show the version")
    .helpOption("-h, --help", "show help")
    .showHelpAfterError("Use --help to show the usage.")
    .exitOverride()
    // A subcommand may have an option of the same name as its parent.
    .enablePositionalOptions()
    .configureHelp(HELP_LAYOUT);
  program.commandsGroup("Run:");
  addRun(program);
  addReload(program);
  addKind(program);
  program.commandsGroup("Look:");
  addStatus(program);
  addPs(program);
  addNames(program);
  addLookup(program);
  addTail(program);
  addTop(program);
  addUpstreams(program);
  addCache(program);
  addUi(program);
  program.commandsGroup("Diagnose:");
  addDoctor(program);
  addExplain(program);
  addFailures(program);
  program.commandsGroup("Maintain:");
  addCheckConfig(program);
  addCleanup(program);
  addCompletion(program);
  addVersion(program);
  addManual(program);
  addHelp(program);
  addRootlessDefaults(program);
  for (const command of program.commands) {
    command.exitOverride();
    addHelpAll(command);
  }
  return program;
}
