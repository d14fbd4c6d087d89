/**
 * dns11 version: what a bug report should begin with.
 */
import type { Command } from "commander";

import { addJsonOption } from "./control-options.ts";
import { readBuild } from "./build.ts";
import { libcText } from "./platform.ts";

export function addVersion(program: Command): void {
  const command = program
    .command("version")
    .description("Say which dns11 this is, which commit it was built from, and what it runs on");
  addJsonOption(command).action(({ json }: { readonly json?: boolean }) => {
    const { version, commit } = readBuild();
    const told = {
      version,
      commit,
      node: process.versions.node,
      platform: `${process.platform}/${process.arch}`,
      libc: libcText(),
    };
    process.stdout.write(
      json === true
        ? `${JSON.stringify(told)}\n`
        : `dns11 ${told.version}${commit === null ? "" : `, commit ${commit}`}\n` +
            `Node ${told.node}, ${told.platform}, ${told.libc}\n`,
    );
  });
}
