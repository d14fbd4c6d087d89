/**
 * dns11 cleanup: removes what a killed instance left behind.
 */
import type { Command } from "commander";

import { EXIT } from "./exit-code.ts";
import { inOwnProcess } from "./own-process.ts";
import { hostModules } from "./platform.ts";
import { printableLines } from "./printable.ts";
import { enterRootless } from "./rootless.ts";
import { stateDirOption } from "./run.ts";

interface CleanupOptions {
  readonly host?: string;
  readonly stateDir: string;
}

export function addCleanup(program: Command): void {
  program
    .command("cleanup")
    .summary("Remove what a killed dns11 left behind")
    .description("Remove what a killed dns11 left behind: rules, control socket and lock")
    .option(
      "-H, --host <address>",
      "Docker's unix socket (unix:///PATH), as in docker -H; remote engines are not supported",
    )
    .addOption(stateDirOption())
    .action(inOwnProcess(cleanUp));
}

async function cleanUp(options: CleanupOptions): Promise<void> {
  await enterRootless(options);
  const { host, stateDir } = options;
  const { cleanup } = await hostModules();
  const { did, failed } = await cleanup(stateDir, host);
  process.stdout.write(printableLines(did));
  process.stderr.write(printableLines(failed));
  if (failed.length > 0) process.exitCode = EXIT.failure;
}
