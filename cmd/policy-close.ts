/**
 * dns11 policy close: closes networks before Docker starts, for the unit dns11-boot.service.
 */
import type { Command } from "commander";

import { hostModules } from "./modules/platform.ts";
import { printableLines } from "./text/printable.ts";

export function addClose(policy: Command): void {
  policy
    .command("close")
    .description(
      "Close the networks of enforced policies as they were when dns11 ran last, until it runs again; dns11-boot.service does so before Docker starts",
    )
    .exitOverride()
    .action(async () => {
      const { closeNetworks } = await hostModules();
      process.stdout.write(printableLines(await closeNetworks()));
    });
}
