/**
 * Runner of dns11 commands, and of shells, on a pseudo-terminal made by script(1), which can press keys; the output is what a terminal
 * would get, byte for byte.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";

import { PROGRAM } from "./built.ts";
import { SYSTEM_PATH } from "./command.ts";
import { inTime, waitFor } from "../rig/wait.ts";

export interface TerminalOptions {
  readonly columns?: number;
  readonly rows?: number;
  readonly env?: NodeJS.ProcessEnv;
  /** Pressed one after the other, each once the output since the one before matches. */
  readonly keys?: readonly { readonly when: RegExp; readonly press: string }[];
}

/** The last line has the exit code, and whether the terminal's line and signal modes are restored. */
export async function onTerminal(args: readonly string[], options: TerminalOptions = {}): Promise<string> {
  const words = [process.execPath, PROGRAM, ...args].map((word) => `'${word}'`).join(" ");
  const after = `echo "left $? $(stty -a | grep -oE '[-]?(isig|icanon)' | tr '\\n' ' ')"`;
  return await shellOnTerminal(`${words}; ${after}`, options);
}

/** A line for sh, which may start another shell that waits for keys. */
export async function shellOnTerminal(line: string, options: TerminalOptions = {}): Promise<string> {
  const { columns = 100, rows = 30, env = {}, keys = [] } = options;
  const child = spawn("script", ["-qec", `stty cols ${columns} rows ${rows}; ${line}`, "/dev/null"], {
    stdio: ["pipe", "pipe", "inherit"],
    env: { ...process.env, TERM: "xterm-256color", NO_COLOR: "", ...env, PATH: SYSTEM_PATH, SHELL: "/bin/sh" },
  });
  const closed = once(child, "close");
  let seen = "";
  child.stdout.on("data", (chunk: Buffer) => (seen += chunk.toString("latin1")));
  child.stdin.on("error", () => undefined);
  try {
    let from = 0;
    for (const { when, press } of keys) {
      await waitFor(`${when} on the terminal`, () => (when.test(seen.slice(from)) ? true : undefined));
      from = seen.length;
      child.stdin.write(press);
    }
    await inTime(closed, "the command on the terminal to end");
  } catch (error) {
    child.kill("SIGKILL");
    throw new Error(`The terminal showed ${JSON.stringify(seen)}`, { cause: error });
  }
  return seen;
}
