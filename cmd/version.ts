/**
 * dns11 version: version, commit and platform, as a bug report needs them.
 */
import type { Command } from "commander";

import { addJsonOption } from "./options/control-options.ts";
import { versionReport } from "./process/build.ts";
import { jsonLine } from "./text/printable.ts";

export function addVersion(program: Command): void {
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
