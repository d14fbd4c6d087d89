/**
 * dns11 cleanup: removes what a killed instance left behind.
 */
import type { Command } from "commander";

import { EXIT } from "./process/exit-code.ts";
import { inOwnProcess } from "./process/own-process.ts";
import { hostModules } from "./modules/platform.ts";
import { printableLines } from "./text/printable.ts";
import { enterRootless } from "./process/rootless.ts";
import { stateDirOption } from "./options/control-options.ts";

interface CleanupOptions {
  readonly host?: string;
  readonly stateDir: string;
  readonly policies?: boolean;
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
    .option("--policies", "also remove what holds containers to policies: they reach every address then")
    .addOption(stateDirOption())
    .action(inOwnProcess(cleanUp));
}

async function cleanUp(options: CleanupOptions): Promise<void> {
  await enterRootless(options);
  const { host, stateDir, policies } = options;
  const { cleanup } = await hostModules();
  const { did, failed } = await cleanup(stateDir, host, { removesPolicies: policies === true });
  process.stdout.write(printableLines(did));
  process.stderr.write(printableLines(failed));
  if (failed.length > 0) process.exitCode = EXIT.failure;
}
