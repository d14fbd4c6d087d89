/**
 * dns11 version: version, commit and platform, as a bug report needs them.
 */
import type { Command } from "commander";

import { addJsonOption } from "./control-options.ts";
import { readBuild } from "./build.ts";
import { libcText } from "./platform.ts";
import { jsonLine } from "./printable.ts";

interface VersionReport {
  readonly version: string;
  readonly commit: string | null;
  readonly node: string;
  readonly platform: string;
  readonly libc: string;
}

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

export function versionReport(): VersionReport {
  const { version, commit } = readBuild();
  const platform = `${process.platform}/${process.arch}`;
  return { version, commit, node: process.versions.node, platform, libc: libcText() };
}
