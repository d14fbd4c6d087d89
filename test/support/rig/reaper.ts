/**
 * Owns the promise that nothing outlives a test file, however that file ends. A small process of its own knows what the
 * test holds; the pipe to it closes with the death of the test, also by SIGKILL, and then it removes what is left.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { type Leftovers, removeLeftovers } from "./leftovers.ts";

export type ReaperOrder = { readonly hold: Leftovers } | { readonly release: string };

let reaper: ChildProcess | undefined;

/** To be called before the thing is made: what is half made has to go, too. */
export function hold(leftovers: Leftovers): void {
  reaper ??= startReaper();
  order(reaper, { hold: leftovers });
}

export async function removeTracked(leftovers: Leftovers): Promise<void> {
  await removeLeftovers(leftovers);
  if (reaper !== undefined) order(reaper, { release: leftovers.id });
}

/** Lets a test end that forgot the process: otherwise the child and the open pipes to it would keep the test alive. */
export function unrefChild(child: ChildProcess): void {
  child.unref();
  for (const pipe of [child.stdin, child.stdout, child.stderr]) {
    if (pipe instanceof Socket) pipe.unref();
  }
}

function order(child: ChildProcess, message: ReaperOrder): void {
  child.stdin?.write(`${JSON.stringify(message)}\n`);
}

function startReaper(): ChildProcess {
  const program = fileURLToPath(new URL("./reaper-main.js", import.meta.url));
  // Detached: the interrupt key of a terminal must not end it together with the test.
  const child = spawn(process.execPath, [program], { stdio: ["pipe", "ignore", "ignore"], detached: true });
  // A reaper that is gone is no reason to fail the test; the test still removes its things itself.
  child.stdin.on("error", () => {});
  unrefChild(child);
  return child;
}
