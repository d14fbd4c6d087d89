/** SystemFiles: all files of an engine's host, for what an installation adds and a removal must take away. */
import { check } from "../program/command.ts";

/** Records and caches of dpkg and apt. */
const OF_PACKAGE_TOOLS = /^\/var\/(?:lib|cache|log)\/(?:dpkg|apt|alternatives|debconf)/;

/** A line for each: path, kind, permissions, target. `inHost` is the command line that runs a command there. */
export async function systemFiles(inHost: readonly string[]): Promise<string[]> {
  const [command, ...args] = [...inHost, "find", "/", "-xdev", "-printf", "%p %y %m %l\\n"];
  const all = await check(command, args, { env: { LC_ALL: "C" } });
  return all
    .split("\n")
    .filter((line) => !OF_PACKAGE_TOOLS.test(line))
    .toSorted();
}
