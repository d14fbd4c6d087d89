/** Program: the definition of the command line, apart from running it. Each command has its own file. */
import { Command } from "commander";
import { FEATURES } from "../src/features.ts";
import type { Feature } from "../src/features/contract.ts";
import { readBuild, versionReport } from "./process/build.ts";
import { addCache } from "./cache.ts";
import { addCheckConfig } from "./check-config.ts";
import { addCleanup } from "./cleanup.ts";
import { addCompletion } from "./completion.ts";
import { addDoctor } from "./doctor.ts";
import { addExplain } from "./explain.ts";
import { addFailures } from "./failures.ts";
import { HELP_LAYOUT } from "./help/help-layout.ts";
import { addLookup } from "./lookup.ts";
import { addManual } from "./manual.ts";
import { addNames } from "./names.ts";
import { addPs } from "./ps.ts";
import { addReload } from "./reload.ts";
import { addStateDirs } from "./process/rootless.ts";
import { addRun } from "./run.ts";
import { addStatus } from "./status.ts";
import { addTail } from "./tail.ts";
import { addTop } from "./top.ts";
import { addUi } from "./ui.ts";
import { addUpstreams } from "./upstreams.ts";
import { addWait } from "./wait.ts";
import { addJsonOption } from "./options/control-options.ts";
import { jsonLine } from "./text/printable.ts";

/** Dns11 help: the help of a command or subcommand. An unknown command is an error, as everywhere else. */
function addHelp(program: Command): void {
  program
    .command("help [command...]")
    .description("Show help for a command")
    .action((words: readonly string[]) => {
      let command = program;
      for (const word of words) command = requireCommand(command, word);
      command.help();
    });
}

/** The subcommand of that name; exits with an error if there is none. */
function requireCommand(command: Command, word: string): Command {
  return command.commands.find((each) => each.name() === word) ?? unknownCommand(command, word);
}

function unknownCommand(command: Command, word: string): never {
  return command.error(`error: unknown command '${word}'`, { code: "commander.unknownCommand" });
}

/** Dns11 version: version, commit and platform, as a bug report needs them. */
function addVersion(program: Command): void {
  const command = program.command("version").description("Show version, commit and platform");
  addJsonOption(command).action(({ json }: { readonly json?: boolean }) => {
    const report = versionReport();
    const { commit } = report;
    process.stdout.write(
      json === true
        ? jsonLine(report)
        : `dns11 ${report.version}${commit === null ? "" : `, commit ${commit}`}\n` +
            `Node ${report.node}, ${report.platform}, ${report.libc}\n`,
    );
  });
}

type AddCommand = (program: Command) => void;

/** By the headings of the help, in its order. `__complete` is added with `completion`. */
const COMMANDS: Readonly<Record<string, Readonly<Record<string, AddCommand>>>> = {
  "Run:": { run: addRun, reload: addReload },
  "Look:": {
    status: addStatus,
    ps: addPs,
    names: addNames,
    lookup: addLookup,
    tail: addTail,
    top: addTop,
    upstreams: addUpstreams,
    cache: addCache,
    ui: addUi,
  },
  "Diagnose:": { doctor: addDoctor, explain: addExplain, failures: addFailures },
  "Test:": { wait: addWait },
  "Maintain:": {
    "check-config": addCheckConfig,
    cleanup: addCleanup,
    completion: addCompletion,
    version: addVersion,
    man: addManual,
    help: addHelp,
  },
};

/** Commands that describe all others. */
const ABOUT_ALL: ReadonlySet<string> = new Set(["completion", "man", "help"]);

/**
 * `name` is what users type; `word` is the first word after it. If that is a command, only that one is made: all of them
 * are a tenth of the processor time of a short command.
 */
export async function createProgram(name: string, word = ""): Promise<Command> {
  const program = new Command(name)
    .description("DNS resolver for Docker containers at 127.0.0.11, outside dockerd")
    .version(readBuild().version, "-V, --version", "show the version")
    .helpOption("-h, --help", "show help")
    .showHelpAfterError("Use --help to show the usage.")
    .exitOverride()
    // A subcommand may have an option of the same name as its parent.
    .enablePositionalOptions()
    .configureHelp(HELP_LAYOUT)
    .helpCommand(false);
  const ofFeatures = FEATURES.flatMap(({ commands }: Feature<Command>) => Object.entries(commands ?? {}));
  const words = [...Object.values(COMMANDS), Object.fromEntries(ofFeatures)].flatMap((group) => Object.keys(group));
  // "policy apply" is a command of `policy`.
  const isWanted = (key: string): boolean => !isAlone || key.split(" ", 1)[0] === word;
  const isAlone = !ABOUT_ALL.has(word) && words.includes(word);
  for (const [heading, group] of Object.entries(COMMANDS)) {
    program.commandsGroup(heading);
    for (const [key, add] of Object.entries(group)) if (isWanted(key)) add(program);
    for (const [key, { group: own, load }] of ofFeatures)
      if (own === heading && isWanted(key)) (await load()).add(program);
  }
  addStateDirs(program);
  for (const command of program.commands) command.exitOverride();
  return program;
}
