/**
 * InNode: `run --in-node`, for a dns11 inside a KIND node: which flags have a meaning there, and what leaves no process behind.
 */
import { type Command, Option } from "commander";

import type { Log } from "../../src/base/log/log.ts";
import type { AnySetting } from "../../src/config/setting.ts";
import type { RunSettings } from "../../src/config/settings.ts";
import { SETTINGS } from "../../src/config/keys.ts";
import { hostModules } from "../modules/platform.ts";
import { printableLines } from "../text/printable.ts";

const ONLY_IN_NODE: ReadonlySet<string> = new Set(["once", "undo"]);
/** These are about containers and the engine. */
const NEED_ENGINE: ReadonlySet<string> = new Set([
  ..."host enginePid dryRun json only visible".split(" "),
  ...Object.values<AnySetting>(SETTINGS).flatMap(({ flag, needsEngine }) =>
    flag === undefined || !needsEngine ? [] : new Option(`--${flag.flag}`).attributeName(),
  ),
]);

export function addInNodeOptions(command: Command): void {
  command
    .option("--in-node", "serve the pods of the KIND node that dns11 runs in; needs no engine")
    .addOption(
      new Option(
        "--once",
        "with --in-node: install rules that redirect pods to Docker's resolver, and exit; no process remains (IPv4 only)",
      ).conflicts("undo"),
    )
    .option("--undo", "with --in-node: remove those rules, or the remains of a killed dns11");
}

/** Ends with an error if a flag would have no effect. */
export function requireInNode(command: Command): void {
  const { inNode } = command.opts<{ readonly inNode?: boolean }>();
  const without = inNode === true ? NEED_ENGINE : ONLY_IN_NODE;
  const wrong = command.options.find(
    (option) => without.has(option.attributeName()) && command.getOptionValueSource(option.attributeName()) === "cli",
  );
  if (wrong === undefined) return;
  const why =
    inNode === true ? "has no effect with --in-node, where there is no engine: remove one of them" : "needs --in-node";
  command.error(`error: option '${wrong.long ?? wrong.flags}' ${why}`, { code: "commander.conflictingOption" });
}

/** Rules that stay, and what a check of the node finds wrong with them. */
export async function serveOnceInNode(settings: RunSettings, log: Log): Promise<void> {
  const { serveOnce } = await hostModules();
  const { lines, isServed, diagnose } = await serveOnce(settings, log);
  print(lines);
  if (!isServed) return;
  const wrong = (await diagnose()).filter(({ state }) => state !== "ok");
  print(wrong.map(({ what, detail }) => `${what}: ${detail}`));
}

export async function undoInNode(stateDir: string): Promise<void> {
  const { undoNodeSetup } = await hostModules();
  print(await undoNodeSetup(stateDir));
}

function print(lines: readonly string[]): void {
  process.stdout.write(printableLines(lines));
}
